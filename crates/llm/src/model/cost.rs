//! Prices: their form in records, and the cost of a usage.

use serde_json::{Value, json};

use super::{Model, RateTier, Rates};
use crate::message::{Cost, Usage};

impl Rates {
    /// Parses the `cost` object of a record; missing prices are zero.
    pub fn from_record(cost: &Value) -> Self {
        let rate = |of: &Value, name: &str| of[name].as_f64().unwrap_or(0.0);
        let tier = |tier: &Value| {
            Some(RateTier {
                input_tokens_above: count(tier.get("inputTokensAbove"))?,
                input: rate(tier, "input"),
                output: rate(tier, "output"),
                cache_read: rate(tier, "cacheRead"),
                cache_write: rate(tier, "cacheWrite"),
            })
        };
        Self {
            input: rate(cost, "input"),
            output: rate(cost, "output"),
            cache_read: rate(cost, "cacheRead"),
            cache_write: rate(cost, "cacheWrite"),
            tiers: cost["tiers"].as_array().into_iter().flatten().filter_map(tier).collect(),
        }
    }

    /// Returns the `cost` object of a record.
    pub fn to_record(&self) -> Value {
        let mut cost = json!({
            "input": self.input, "output": self.output, "cacheRead": self.cache_read, "cacheWrite": self.cache_write
        });
        if !self.tiers.is_empty() {
            let tier = |tier: &RateTier| {
                json!({
                    "inputTokensAbove": tier.input_tokens_above, "input": tier.input, "output": tier.output,
                    "cacheRead": tier.cache_read, "cacheWrite": tier.cache_write
                })
            };
            cost["tiers"] = self.tiers.iter().map(tier).collect();
        }
        cost
    }

    /// Returns the prices for calculations: unknown ones are zero.
    #[must_use]
    pub fn counted(&self) -> Self {
        let rate = |rate: f64| rate.max(0.0);
        Self {
            input: rate(self.input),
            output: rate(self.output),
            cache_read: rate(self.cache_read),
            cache_write: rate(self.cache_write),
            tiers: self.tiers.clone(),
        }
    }

    /// Returns the prices for a request with this many input tokens, including cached ones.
    pub fn at(&self, input_tokens: u64) -> RateTier {
        let base = RateTier {
            input_tokens_above: 0,
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
        };
        let exceeded = self.tiers.iter().filter(|tier| input_tokens > tier.input_tokens_above);
        exceeded.max_by_key(|tier| tier.input_tokens_above).copied().unwrap_or(base)
    }

    /// Returns all prices multiplied by a factor.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let tier = |tier: &RateTier| RateTier {
            input_tokens_above: tier.input_tokens_above,
            input: tier.input * factor,
            output: tier.output * factor,
            cache_read: tier.cache_read * factor,
            cache_write: tier.cache_write * factor,
        };
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_read: self.cache_read * factor,
            cache_write: self.cache_write * factor,
            tiers: self.tiers.iter().map(tier).collect(),
        }
    }

    /// Returns the cost of a usage. Cache writes with a lifetime of one hour cost twice the input price.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let rates = self.at(usage.input + usage.cache_read + usage.cache_write);
        let price = |rate: f64, tokens: u64| rate.max(0.0) / 1_000_000.0 * tokens as f64;
        let long = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let mut cost = Cost {
            input: price(rates.input, usage.input),
            output: price(rates.output, usage.output),
            cache_read: price(rates.cache_read, usage.cache_read),
            cache_write: price(rates.cache_write, usage.cache_write - long) + price(rates.input * 2.0, long),
            total: 0.0,
            total_from_provider: Some(false),
        };
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        cost
    }
}

impl Model {
    /// Returns whether the model's prices determine the cost of a call. Catalogs have negative prices for models that forward calls to
    /// others; newer ones have zeros, which OpenRouter otherwise uses only for models named free.
    pub fn has_known_price(&self) -> bool {
        let rates = [self.rates.input, self.rates.output, self.rates.cache_read, self.rates.cache_write];
        let is_free = self.id.as_str().ends_with(":free") || self.id == *"openrouter/free";
        let is_router = self.provider == *"openrouter" && !is_free && rates.iter().all(|rate| *rate == 0.0);
        rates.iter().all(|rate| *rate >= 0.0) && !is_router
    }
}

/// Parses a count; hand-written files may contain floats.
pub(super) fn count(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_f64).filter(|n| *n >= 0.0).map(|n| n as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn router_models_have_no_known_price() {
        let known = |provider: &str, id: &str, input: f64| {
            let record = json!({"id": id, "api": "a", "provider": provider, "cost": {"input": input}});
            Model::from_record(&record).unwrap().has_known_price()
        };
        assert!(!known("openrouter", "openrouter/auto", -1_000_000.0));
        assert!(!known("openrouter", "openrouter/auto", 0.0));
        assert!(known("openrouter", "x/y:free", 0.0) && known("openrouter", "x/y", 1.0) && known("local", "m", 0.0));
    }

    fn rates() -> Rates {
        let tier = RateTier { input_tokens_above: 1000, input: 6.0, output: 30.0, cache_read: 0.6, cache_write: 7.5 };
        Rates { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75, tiers: vec![tier] }
    }

    #[test]
    fn a_tier_price_applies_to_the_whole_request() {
        let at = Usage { input: 900, cache_read: 100, output: 10, ..Usage::default() };
        assert_eq!(rates().cost(&at).input, 3.0 / 1_000_000.0 * 900.0);
        let above = Usage { cache_read: 101, ..at };
        assert_eq!(rates().cost(&above).output, 30.0 / 1_000_000.0 * 10.0);
    }

    #[test]
    fn an_hour_of_cache_costs_double_input() {
        let usage = Usage { cache_write: 10, cache_write_1h: Some(4), ..Usage::default() };
        assert_eq!(rates().cost(&usage).cache_write, 3.75 / 1_000_000.0 * 6.0 + 6.0 / 1_000_000.0 * 4.0);
    }

    #[test]
    fn unknown_prices_are_free() {
        let rates = Rates { input: -1.0, ..Rates::default() };
        assert_eq!(rates.cost(&Usage { input: 5, ..Usage::default() }).total, 0.0);
    }
}
