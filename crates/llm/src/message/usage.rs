//! Tokens and money of one answer.

/// Tokens of one answer and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens of the request that came from no cache.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the request that were read from the provider's cache.
    pub cache_read: u64,
    /// Tokens of the request that were written to the provider's cache.
    pub cache_write: u64,
    /// The part of `output` spent on reasoning, where the provider says so.
    pub reasoning: Option<u64>,
    /// The provider's own total, or the sum of the four.
    pub total_tokens: u64,
    /// US dollars.
    pub cost: Cost,
    /// The part of `cache_write` that lives for an hour, where the provider says so.
    pub cache_write_1h: Option<u64>,
}

impl Usage {
    /// Tokens in the model's context: the total, or the sum of the parts when there is no total.
    pub fn context_tokens(&self) -> u64 {
        if self.total_tokens > 0 {
            self.total_tokens
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// Whether the usage is empty: servers that count nothing send zeros.
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
        self.cost.total_from_provider &= other.cost.total_from_provider;
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    }
}

/// Money in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// For uncached input.
    pub input: f64,
    /// For output.
    pub output: f64,
    /// For cache reads.
    pub cache_read: f64,
    /// For cache writes.
    pub cache_write: f64,
    /// In all.
    pub total: f64,
    /// `total` was billed by the provider, not computed from rates.
    pub total_from_provider: bool,
}
