use super::*;
use pinch_testing::wires::bedrock::{frame, message};
use proptest::prelude::*;
use serde_json::json;

/// Returns all frames of `chunks` as `name|data`, and the final error.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Option<AwsEventError>) {
    let mut decoder = AwsEventDecoder::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(format!("{}|{}", frame.event, frame.data)),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    let end = decoder.finish().err();
    (frames, end)
}

fn stream() -> Vec<u8> {
    let exception = [(":message-type", "exception"), (":exception-type", "throttlingException")];
    let error = [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "no \"luck\"")];
    [
        message("messageStart", &json!({"role": "assistant"})),
        frame(&[], b"\xFF"),
        frame(&exception, br#"{"message":"slow"}"#),
        frame(&error, b""),
    ]
    .concat()
}

#[test]
fn events_exceptions_and_errors_are_decoded() {
    let (frames, end) = decode([&stream()[..]]);
    assert_eq!(
        frames,
        [
            r#"messageStart|{"role":"assistant"}"#,
            "|\u{FFFD}",
            r#"exception:throttlingException|{"message":"slow"}"#,
            r#"error:InternalFailure|{"message":"no \"luck\""}"#,
        ]
    );
    assert_eq!(end, None);
}

#[test]
fn headers_of_all_types_are_decoded() {
    let mut headers = Vec::new();
    for (tag, value) in [
        (0, &b""[..]),
        (1, b""),
        (2, b"\xFF"),
        (3, b"\x01\x02"),
        (4, b"\0\0\0\x05"),
        (5, b"\0\0\0\0\0\0\0\x06"),
        (6, b"\0\x02ab"),
        (7, b"\0\x02cd"),
        (8, b"\0\0\0\0\0\0\0\x07"),
        (9, b"0123456789abcdef"),
    ] {
        headers.extend([1, b'a' + tag, tag]);
        headers.extend(value);
    }
    let bytes = pinch_testing::wires::bedrock::raw_frame(&headers, b"{}");
    let read = EventMessage::read(&bytes, 1_000).unwrap().unwrap();
    let values: Vec<HeaderValue<'_>> = read.headers.iter().map(|(_, value)| *value).collect();
    assert_eq!(
        values,
        [
            HeaderValue::Bool(true),
            HeaderValue::Bool(false),
            HeaderValue::Byte(-1),
            HeaderValue::Short(258),
            HeaderValue::Int(5),
            HeaderValue::Long(6),
            HeaderValue::Bytes(b"ab"),
            HeaderValue::Text("cd"),
            HeaderValue::Timestamp(7),
            HeaderValue::Uuid(*b"0123456789abcdef"),
        ]
    );
    assert_eq!((read.headers_len, read.total_len, read.payload), (headers.len(), bytes.len(), &b"{}"[..]));
    let unknown = pinch_testing::wires::bedrock::raw_frame(&[1, b'a', 10], b"");
    assert!(matches!(EventMessage::read(&unknown, 1_000), Err(AwsEventError::Malformed { .. })));
    let cut = pinch_testing::wires::bedrock::raw_frame(&[1, b'a', 7, 0, 9, b'x'], b"");
    assert!(matches!(EventMessage::read(&cut, 1_000), Err(AwsEventError::Malformed { .. })));
}

#[test]
fn broken_messages_are_errors() {
    let good = message("messageStart", &json!({}));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(decode([&bad[..]]).1, Some(AwsEventError::Checksum), "byte {at}");
    }
    let cut = &good[..good.len() - 1];
    assert_eq!(decode([cut]).1, Some(AwsEventError::Truncated { got: cut.len() }));
    // A length is not trusted before its checksum, nor beyond the limit: the decoder does not wait for the bytes.
    let mut decoder = AwsEventDecoder::new(16);
    decoder.push(&good[..12]);
    assert!(matches!(decoder.next_frame(), Err(AwsEventError::Oversized { limit: 16, .. })));
}

proptest! {
    #[test]
    fn chunking_does_not_change_frames(cuts in prop::collection::vec(0usize..600, 0..8)) {
        let bytes = stream();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(chunks), decode([&bytes[..]]));
    }

    #[test]
    fn decoding_any_bytes_terminates(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let (frames, _) = decode([&bytes[..]]);
        prop_assert!(frames.len() <= 4);
    }
}
