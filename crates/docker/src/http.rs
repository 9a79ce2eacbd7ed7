//! As much of HTTP as the Engine API needs.
//!
//! HTTP/1.0 (RFC 1945): one request a connection, and an answer that ends with it. So there is no
//! chunking, no keeping alive and no pipelining to get wrong; Go's server, which the engine is built
//! on, answers it in kind, streams included.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};

use crate::endpoint::Duplex;

/// Longest head of an answer.
const HEAD: u64 = 64 << 10;

/// Head of an answer; the body follows on the connection.
pub(crate) struct Answer {
    /// Status code.
    pub(crate) status: u16,
    /// What follows.
    pub(crate) body: Box<dyn Read + Send>,
}

/// Sends a request and reads the head of the answer.
pub(crate) fn exchange(
    mut connection: Box<dyn Duplex>,
    method: &str,
    path: &str,
    content: &str,
    body: &[u8],
) -> io::Result<Answer> {
    write!(
        connection,
        "{method} {path} HTTP/1.0\r\nHost: docker\r\nUser-Agent: ncclctl\r\nContent-Type: {content}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )?;
    connection.write_all(body)?;
    connection.flush()?;
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    let mut head = (&mut reader).take(HEAD);
    head.read_line(&mut line)?;
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.trim().parse().ok())
        .ok_or_else(|| bad("the answer is no HTTP"))?;
    let mut length = None;
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(bad("the answer ends in its head"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<u64>().ok();
        }
    }
    Ok(Answer {
        status,
        body: match length {
            Some(length) => Box::new(reader.take(length)),
            None => Box::new(reader),
        },
    })
}

/// Escapes a value of a query (RFC 3986, unreserved characters stay).
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_what_is_none() {
        let answer = |text: &'static str| {
            let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            theirs.write_all(text.as_bytes()).unwrap();
            drop(theirs.try_clone());
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            let answer = exchange(Box::new(ours), "GET", "/x", "application/json", b"")?;
            let mut body = String::new();
            { answer.body }.read_to_string(&mut body)?;
            Ok::<_, io::Error>((answer.status, body))
        };
        let good = answer("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nokmore").unwrap();
        assert_eq!(good, (200, "ok".to_owned()));
        assert_eq!(answer("HTTP/1.1 404 Not Found\r\n\r\nto the end").unwrap().1, "to the end");
        for bad in ["", "SSH-2.0\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.0 200 OK\r\n"] {
            assert!(answer(bad).is_err(), "{bad}");
        }
        assert_eq!(escape(r#"{"a":["b c"]}"#), "%7B%22a%22%3A%5B%22b%20c%22%5D%7D");
    }
}
