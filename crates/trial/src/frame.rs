//! Frames: a length of four bytes, most significant first, then that many bytes of JSON.

use std::io::{self, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Largest frame, bytes. The largest real one is the list of contacts of all ranks.
pub(crate) const LARGEST: usize = 64 << 20;

/// Largest frame of a peer that has not proved itself yet.
pub(crate) const LARGEST_UNPROVED: usize = 4 << 10;

/// Serialises one message with its length in front.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    with_length(bytes)
}

/// Puts the length in front of a message that is JSON already.
pub(crate) fn from_json(text: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4 + text.len());
    bytes.extend([0; 4]);
    bytes.extend(text.as_bytes());
    with_length(bytes)
}

/// Fills in the first four bytes.
fn with_length(mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = bytes.len() - 4;
    if length > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes")));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(bytes)
}

fn checked(length: [u8; 4], largest: usize) -> io::Result<usize> {
    let length = u32::from_be_bytes(length) as usize;
    if length > largest {
        let text = format!("frame of {length} bytes, at most {largest} expected");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(length)
}

/// Reads one message; `None` at a clean end.
pub(crate) async fn read<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    largest: usize,
) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; checked(length, largest)?];
    from.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes encoded bytes and flushes.
pub(crate) async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

/// As [`read`], blocking.
pub(crate) fn read_blocking<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; checked(length, LARGEST)?];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Bytes as hexadecimal digits: half the size of a JSON list of numbers, and quicker.
pub(crate) mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        to.serialize_str(&text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
        if !text.len().is_multiple_of(2) {
            return Err(D::Error::custom("an odd number of hexadecimal digits"));
        }
        text.as_bytes()
            .chunks_exact(2)
            .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
            .collect::<Option<_>>()
            .ok_or_else(|| D::Error::custom("expected hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(text in ".*", cut in 0usize..64) {
            let bytes = encode(&text).unwrap();
            let back: Option<String> = read_blocking(&mut &bytes[..]).unwrap();
            prop_assert_eq!(back, Some(text));
            // cut anywhere: an error or a clean end, never a panic, never another message
            let cut = cut.min(bytes.len() - 1);
            let back = read_blocking::<String>(&mut &bytes[..cut]);
            prop_assert!(!matches!(back, Ok(Some(_))));
        }

        #[test]
        fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read_blocking::<String>(&mut &bytes[..]);
        }
    }

    #[test]
    fn contacts_are_hexadecimal() {
        use crate::engine::Contact;
        let contact = Contact { body: vec![0, 0xfe, 0x41], shown: "é".to_owned() };
        let bytes = encode(&contact).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("00fe41"));
        let back: Contact = read_blocking(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!(back, contact);
        for text in ["{\"body\":\"0\",\"shown\":\"\"}", "{\"body\":\"zz\",\"shown\":\"\"}"] {
            let bytes = from_json(text).unwrap();
            assert!(read_blocking::<Contact>(&mut &bytes[..]).is_err(), "{text}");
        }
    }

    #[test]
    fn a_length_that_can_not_be_is_refused_before_memory_is_taken() {
        let error = read_blocking::<String>(&mut &b"GET / HTTP/1.1\r\n"[..]).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }
}
