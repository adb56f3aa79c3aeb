//! Formatting numbers like JavaScript.

/// Formats a number like JavaScript's `Number.prototype.toString`: the shortest digits that parse to the same number, an exponent only from
/// 1e21 on and below 1e-6, no negative zero, and `NaN`, `Infinity`, `-Infinity` for values that JSON cannot represent.
///
/// ```
/// use pinch_stdx::json::number::format;
///
/// assert_eq!(format(3e-6), "0.000003");
/// assert_eq!(format(1.0), "1");
/// assert_eq!(format(1e21), "1e+21");
/// ```
pub fn format(number: f64) -> String {
    ryu_js::Buffer::new().format(number).to_owned()
}

#[cfg(test)]
mod tests {
    use super::format;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_as_javascript_does() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.000_003, "0.000003"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (5.25e-7, "5.25e-7"),
            (0.000_026_25, "0.00002625"),
            (0.007_500_000_000_000_001, "0.007500000000000001"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.25e22, "1.25e+22"),
            (1_700_000_000_000.0, "1700000000000"),
            (123.456, "123.456"),
            // If two representations are equally close, the even digit.
            (1_097_718_834_198_879.2, "1097718834198879.2"),
            (-97_691_119_162_302.62, "-97691119162302.62"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(format(number), text);
        }
    }

    proptest! {
        #[test]
        fn formatted_numbers_round_trip(number in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(format(number).parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
    }
}
