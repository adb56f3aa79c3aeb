use super::*;

/// An image of one pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn block(data: &str, mime_type: &str) -> Block {
    Block::Image(Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
}

#[tokio::test]
async fn image_types_are_detected_by_content() {
    let (intake, limits) = (ImageIntake::default(), ImageLimits::default());
    let fits = [Block::text("a"), block(DOT, "image/png")];
    assert_eq!(intake.admit_blocks(&fits, &limits).await, None);
    let mut wrapped = DOT.trim_end_matches('=').to_owned();
    wrapped.insert(40, '\n');
    let odd = [block(&wrapped, "image/jpeg"), Block::text("a"), block("AAAA", "image/png"), block("?", "image/png")];
    let [unknown, broken] =
        [RejectedImage::NotConverted, RejectedImage::Undecodable].map(|why| Block::text(why.note()));
    let made = [block(DOT, "image/png"), Block::text("a"), unknown, broken];
    assert_eq!(intake.admit_blocks(&odd, &limits).await.as_deref(), Some(&made[..]));
    assert_eq!(intake.admit_blocks(&[], &limits).await, None);
    let untouched = ImageIntake::new(ImageProcessing::Untouched);
    assert_eq!(untouched.admit_blocks(&odd, &limits).await, None);
}

#[tokio::test]
async fn images_with_too_many_bytes_are_rejected() {
    let limits = ImageLimits { max_encoded_bytes: 4, ..ImageLimits::default() };
    for treatment in [ImageProcessing::Checked, ImageProcessing::Resized] {
        let made = ImageIntake::new(treatment).admit_blocks(&[block(DOT, "image/png")], &limits).await;
        assert_eq!(made, Some(vec![Block::text(RejectedImage::TooLarge.note())]), "{treatment:?}");
    }
}

#[cfg(feature = "images")]
mod decoded {
    use std::io::Cursor;

    use image::{ImageFormat, RgbImage};

    use super::*;

    fn picture(width: u32, height: u32, format: ImageFormat) -> Bytes {
        let mut out = Cursor::new(Vec::new());
        RgbImage::new(width, height).write_to(&mut out, format).unwrap();
        out.into_inner().into()
    }

    fn wide(max_width: u32) -> ImageLimits {
        ImageLimits { max_width, ..ImageLimits::default() }
    }

    #[tokio::test]
    async fn an_image_is_decoded_once_by_all_clones() {
        let bringer = ImageIntake::default();
        let session = bringer.clone();
        for (format, mime_type) in [(ImageFormat::Png, "image/png"), (ImageFormat::Bmp, "image/bmp")] {
            let n_before = bringer.n_decoded();
            let admitted = bringer.admit(picture(300, 30, format), mime_type, &wide(100)).await.unwrap();
            assert!(admitted.notes.last().unwrap().contains("displayed at 100x10."), "{:?}", admitted.notes);
            let blocks = [Block::Image(admitted.image)];
            assert_eq!(session.admit_blocks(&blocks, &wide(100)).await, None);
            assert_eq!(session.n_decoded() - n_before, 1, "{mime_type}");
        }
        // An unrelated intake does not know it and decodes it.
        let stranger = ImageIntake::default();
        let blocks = [block(&STANDARD.encode(picture(90, 9, ImageFormat::Png)), "image/png")];
        for _ in 0..2 {
            assert_eq!(stranger.admit_blocks(&blocks, &wide(100)).await, None);
            assert_eq!(stranger.n_decoded(), 1);
        }
    }

    #[tokio::test]
    async fn a_known_image_is_shrunk_for_stricter_limits() {
        let intake = ImageIntake::default();
        let content = picture(300, 30, ImageFormat::Png);
        let image = intake.admit(content.clone(), "image/png", &wide(300)).await.unwrap().image;
        let made = intake.admit_blocks(&[Block::Image(image.clone())], &wide(200)).await.unwrap();
        assert!(made[0].as_text().unwrap().contains("original 300x30, displayed at 200x20."), "{:?}", made[0]);
        let few = ImageLimits { max_encoded_bytes: image.data.len() as u64, ..wide(300) };
        let made = intake.admit_blocks(&[Block::Image(image)], &few).await.unwrap();
        let Block::Image(smaller) = &made[1] else { panic!("{made:?}") };
        assert!((smaller.data.len() as u64) < few.max_encoded_bytes);
    }

    #[tokio::test]
    async fn sizes_are_kept_if_images_are_only_checked() {
        let intake = ImageIntake::new(ImageProcessing::Checked);
        let image = block(&STANDARD.encode(picture(300, 30, ImageFormat::Png)), "image/png");
        let broken = block(&STANDARD.encode(&picture(300, 30, ImageFormat::Png)[..40]), "image/png");
        let made = [image.clone(), Block::text(RejectedImage::Undecodable.note())];
        assert_eq!(intake.admit_blocks(&[image, broken], &wide(1)).await.as_deref(), Some(&made[..]));
    }
}
