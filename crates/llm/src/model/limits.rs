//! A model's limits for images.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Model;

/// Maximum size of an image; larger ones are resized before they enter a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Maximum width in pixels.
    pub max_width: u32,
    /// Maximum height in pixels.
    pub max_height: u32,
    /// Exclusive upper limit of the base64 length.
    pub max_encoded_bytes: u64,
    /// Initial JPEG quality: 1 to 100.
    pub jpeg_quality: u8,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self { max_width: 2000, max_height: 2000, max_encoded_bytes: 4_718_592, jpeg_quality: 80 }
    }
}

impl ImageLimits {
    /// Parses the `resize` object of a record. Missing or invalid members get their defaults.
    pub fn from_record(resize: &Value) -> Self {
        let number = |name: &str| resize.get(name).and_then(Value::as_f64).filter(|n| *n >= 1.0);
        let usual = Self::default();
        Self {
            max_width: number("maxWidth").map_or(usual.max_width, |n| n as u32),
            max_height: number("maxHeight").map_or(usual.max_height, |n| n as u32),
            max_encoded_bytes: number("maxBytes").map_or(usual.max_encoded_bytes, |n| n as u64),
            jpeg_quality: number("jpegQuality").filter(|n| *n <= 100.0).map_or(usual.jpeg_quality, |n| n as u8),
        }
    }
}

/// Maximum number of images; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageCounts {
    /// In one message.
    pub per_message: Option<usize>,
    /// In all messages of a request.
    pub per_request: Option<usize>,
}

impl Model {
    /// Returns how many images the model accepts: `maxPerMessage` and `maxPerRequest` of `inputLimits.images` in its record.
    pub fn image_counts(&self) -> ImageCounts {
        let images = self.extra.get("inputLimits").map_or(&Value::Null, |limits| &limits["images"]);
        let count = |name: &str| images[name].as_f64().filter(|n| *n >= 1.0).map(|n| n as usize);
        ImageCounts { per_message: count("maxPerMessage"), per_request: count("maxPerRequest") }
    }

    /// Returns the model's limits for an image: `inputLimits.images.resize` in its record.
    pub fn image_limits(&self) -> ImageLimits {
        let limits = self.extra.get("inputLimits").map_or(&Value::Null, |limits| &limits["images"]["resize"]);
        ImageLimits::from_record(limits)
    }

    /// Lowers the maximum side length of images to this many pixels.
    pub fn limit_image_sides(&mut self, max_side: u32) {
        let limits = self.image_limits();
        let (mut input, mut images, mut resize) = (Map::new(), Map::new(), Map::new());
        copy(self.extra.get("inputLimits"), &mut input);
        copy(input.get("images"), &mut images);
        copy(images.get("resize"), &mut resize);
        resize.insert("maxWidth".to_owned(), limits.max_width.min(max_side).into());
        resize.insert("maxHeight".to_owned(), limits.max_height.min(max_side).into());
        images.insert("resize".to_owned(), Value::Object(resize));
        input.insert("images".to_owned(), Value::Object(images));
        Arc::make_mut(&mut self.extra).insert("inputLimits".to_owned(), Value::Object(input));
    }
}

/// Copies the members of a value if it is an object.
fn copy(value: Option<&Value>, into: &mut Map<String, Value>) {
    if let Some(Value::Object(members)) = value {
        into.clone_from(members);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(resize: Value, (width, height, bytes, quality): (u32, u32, u64, u8)) {
        let expected =
            ImageLimits { max_width: width, max_height: height, max_encoded_bytes: bytes, jpeg_quality: quality };
        let record = json!({
            "id": "m", "api": "a", "provider": "p", "inputLimits": {"maxRequestBytes": 9, "images": {"resize": resize}},
        });
        let model = Model::from_record(&record).unwrap();
        assert_eq!(model.image_limits(), expected);
        assert_eq!(model.to_record()["inputLimits"], record["inputLimits"]);
    }

    #[test]
    fn each_missing_limit_has_its_own_default() {
        check(json!({}), (2000, 2000, 4_718_592, 80));
        check(
            json!({"maxWidth": 1568, "maxHeight": 700.9, "maxBytes": 5e6, "jpegQuality": 100}),
            (1568, 700, 5_000_000, 100),
        );
        check(json!({"maxWidth": 1, "jpegQuality": 1}), (1, 2000, 4_718_592, 1));
        check(json!({"maxHeight": 1e300, "maxBytes": 1e300}), (2000, u32::MAX, u64::MAX, 80));
    }

    #[test]
    fn lowering_the_side_limit_changes_nothing_else() {
        for (limits, expect) in [
            (json!(null), (1200, 1200, 4_718_592)),
            (json!({"images": {"resize": {"maxWidth": 800, "maxBytes": 5000}, "maxPerMessage": 2}}), (800, 1200, 5000)),
            (json!({"images": []}), (1200, 1200, 4_718_592)),
        ] {
            let record = json!({"id": "m", "api": "a", "provider": "p", "inputLimits": limits});
            let mut model = Model::from_record(&record).unwrap();
            let counts = model.image_counts();
            model.limit_image_sides(1200);
            let found = model.image_limits();
            assert_eq!((found.max_width, found.max_height, found.max_encoded_bytes), expect);
            assert_eq!(model.image_counts(), counts);
        }
    }

    #[test]
    fn invalid_limits_count_as_missing() {
        for wrong in [json!(0), json!(0.9), json!(-5), json!("many"), json!(null), json!([9])] {
            let all = json!({"maxWidth": wrong, "maxHeight": wrong, "maxBytes": wrong, "jpegQuality": wrong});
            check(all, (2000, 2000, 4_718_592, 80));
        }
        check(json!({"jpegQuality": 101}), (2000, 2000, 4_718_592, 80));
        for wrong in [json!(null), json!(7), json!([]), json!("large")] {
            check(wrong, (2000, 2000, 4_718_592, 80));
        }
        for limits in [json!(null), json!(7), json!({"images": []})] {
            let record = json!({"id": "m", "api": "a", "provider": "p", "inputLimits": limits});
            assert_eq!(Model::from_record(&record).unwrap().image_limits(), ImageLimits::default());
        }
    }
}
