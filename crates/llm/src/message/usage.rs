//! Tokens and cost of one answer.

/// Tokens of one answer and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// The part of `output` spent on reasoning, if the provider reports it.
    pub reasoning: Option<u64>,
    /// The provider's own total, or the sum of the four.
    pub total_tokens: u64,
    /// Cost in US dollars.
    pub cost: Cost,
    /// The part of `cache_write` with a lifetime of one hour, if the provider reports it.
    pub cache_write_1h: Option<u64>,
}

impl Usage {
    /// Returns the tokens in the model's context: the total, or the sum of the parts if there is no total.
    pub fn context_tokens(&self) -> u64 {
        if self.total_tokens > 0 {
            self.total_tokens
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// Returns whether the usage is empty: servers that do not count tokens send zeros.
    pub fn is_zero(&self) -> bool {
        self.context_tokens() == 0
    }

    /// Adds another usage, part by part.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.total_tokens += other.total_tokens;
        self.reasoning = sum(self.reasoning, other.reasoning);
        self.cache_write_1h = sum(self.cache_write_1h, other.cache_write_1h);
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
        let billed = self.cost.total_from_provider == Some(true) && other.cost.total_from_provider == Some(true);
        self.cost.total_from_provider = Some(billed);
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    }
}

/// Cost in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cost of uncached input.
    pub input: f64,
    /// Cost of output.
    pub output: f64,
    /// Cost of cache reads.
    pub cache_read: f64,
    /// Cost of cache writes.
    pub cache_write: f64,
    /// Total cost.
    pub total: f64,
    /// Whether `total` was billed by the provider instead of computed from rates; `None` if it was neither, as in failed calls.
    pub total_from_provider: Option<bool>,
}
