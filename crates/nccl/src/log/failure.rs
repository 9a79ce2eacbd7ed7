//! The figures inside warnings: completion errors, socket errors, failed system and verbs calls.

use std::net::IpAddr;

use super::address;

/// A work completion that failed. All wordings from 2.4 to 2.32 and of the plugins built from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Verbs status: 12 is transport retry exceeded.
    pub status: u32,
    /// Vendor's code.
    pub vendor: Option<u32>,
    /// Peer's set-up address.
    pub peer: Option<IpAddr>,
    /// GID of this side.
    pub local_gid: Option<IpAddr>,
    /// GID of the other side.
    pub remote_gid: Option<IpAddr>,
    /// Device of this side.
    pub hca: Option<String>,
}

/// Reads `Got completion …` and `Got CQE with error …`.
pub fn completion(text: &str) -> Option<Completion> {
    if !text.contains("Got completion") && !text.contains("Got CQE with error") {
        return None;
    }
    let status = ["status=", "with error ", "error "].iter().find_map(|key| {
        let rest = after(text, key)?;
        // `status=IBV_WC_RETRY_EXC_ERR(12)` or `status=12`
        let word = rest.split([' ', ',']).next()?;
        let digits = word.split('(').nth(1).map_or(word, |w| w.trim_end_matches(')'));
        digits.parse().ok()
    })?;
    let gid = |keys: &[&str]| {
        keys.iter().find_map(|k| address::ip(after(text, k)?.trim_start_matches([' ', '='])))
    };
    Some(Completion {
        status,
        vendor: ["vendor err ", "vendor_err="].iter().find_map(|k| leading_number(after(text, k)?)),
        peer: after(text, "from peer ").and_then(address::ip),
        local_gid: gid(&["localGid"]),
        remote_gid: gid(&["remoteGids", "remoteGid"]),
        hca: after(text, "hca ").map(|r| r.split([' ', ',']).next().unwrap_or(r).to_owned()),
    })
}

/// A socket call that failed, and towards whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Other side.
    pub peer: Option<IpAddr>,
    /// Text of the error, like `Connection refused`.
    pub error: &'static str,
    /// The connection was still being made (else it stood already).
    pub connecting: bool,
}

/// Error texts of sockets that NCCL prints.
const SOCKET_ERRORS: &[&str] = &[
    "Connection refused",
    "Connection timed out",
    "No route to host",
    "Network is unreachable",
    "Connection reset by peer",
    "Broken pipe",
    "Software caused connection abort",
    "Operation timed out",
];

/// Reads a failed connect, send or receive.
pub fn socket(text: &str) -> Option<Socket> {
    let error = SOCKET_ERRORS.iter().find(|e| text.contains(*e))?;
    let low = ["onnect to ", "connect to ", "PollConnect", "StartConnect", "Call to connect"];
    let connecting = low.iter().any(|k| text.contains(k));
    let moving = ["Call to recv", "Call to send", "Call to read", "Call to write", "ProgressOpt"];
    if !connecting && !moving.iter().any(|k| text.contains(k)) {
        return None;
    }
    let peer = ["onnect to ", "recv from ", "send to ", "from ", " to "]
        .iter()
        .find_map(|k| address::ip(after(text, k)?));
    Some(Socket { peer, error, connecting })
}

/// `Call to ibv_modify_qp failed with 110 Connection timed out`: the call and its error.
pub fn call(text: &str) -> Option<(&str, &str)> {
    let rest = after(text, "Call to ")?;
    let (name, error) = rest.split_once(" failed").or_else(|| rest.split_once(" returned"))?;
    let name = name.split([' ', '(']).next()?;
    let error = error
        .trim_start_matches([' ', ':'])
        .trim_start_matches("with ")
        .trim_start_matches("error ");
    Some((name, error))
}

/// `QP mtu 5 GID 3 (…)`: what a connection really uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct QueuePair {
    /// NCCL's own device number.
    pub device: u32,
    /// Code of the path MTU: 1 to 5 are 256 to 4096 bytes.
    pub mtu: u32,
    /// GID index, where the port has one.
    pub gid_index: Option<u32>,
    /// Subnet and id in hex, as printed.
    pub gid: String,
    /// The other side's, in lines that print both.
    pub remote: bool,
}

/// Reads `NET/IB: … mtu 5 … GID 3 (0/1001F0AFFFF0000)`.
pub fn queue_pair(text: &str) -> Option<QueuePair> {
    let mtu = leading_number(after(text, " mtu ")?)?;
    let device = ["IbDev ", "Dev ", "dev "]
        .iter()
        .find_map(|k| leading_number(after(text, k)?))
        .unwrap_or(0);
    let (gid_index, gid) = match after(text, " GID ") {
        Some(rest) => {
            (leading_number(rest), rest.split(['(', ')']).nth(1).unwrap_or("").to_owned())
        }
        None => (None, String::new()),
    };
    Some(QueuePair { device, mtu, gid_index, gid, remote: text.contains("remote") })
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.find(key).map(|at| &text[at + key.len()..])
}

fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_of_every_version() {
        for text in [
            "NET/IB : Got completion with error 12, opcode 1, len 32478, vendor err 129",
            "NET/IB : Got completion from peer 10.3.9.2<55466> with error 12, opcode 0, len 0, vendor err 129",
            "NET/IB: Got completion from peer 10.3.9.2<54864> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid ::ffff:10.216.80.4 remoteGids::ffff:10.216.81.4 hca mlx5_4",
            "NET/IB: Got completion from peer 10.3.9.2<1> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=8 vendor_err=129 req_type=Send localGid fe80::1 remoteGidsfe80::2 hca mlx5_0",
        ] {
            let c = completion(text).unwrap();
            assert_eq!((c.status, c.vendor), (12, Some(129)), "{text}");
        }
        let c = completion("Got completion from peer 10.0.0.1<5> with status=12 localGid fe80::1 remoteGidsfe80::2 hca mlx5_0").unwrap();
        assert!(address::is_link_local(c.local_gid.unwrap()));
        assert!(address::is_link_local(c.remote_gid.unwrap()));
        assert_eq!(c.hca.as_deref(), Some("mlx5_0"));
        assert_eq!(c.peer, "10.0.0.1".parse().ok());
    }

    #[test]
    fn sockets_of_every_version() {
        let read = |t| socket(t).map(|s| (s.peer.map(|p| p.to_string()), s.error, s.connecting));
        let some = |p: &str| Some(p.to_owned());
        assert_eq!(
            read("Net : Connect to 192.168.71.9<54263> failed : No route to host"),
            Some((some("192.168.71.9"), "No route to host", true))
        );
        assert_eq!(
            read(
                "socketPollConnect: connect to 169.254.3.1<38213> returned Connection refused, exceeded error retry count after 35 attempts"
            ),
            Some((some("169.254.3.1"), "Connection refused", true))
        );
        assert_eq!(
            read(
                "socketProgressOpt: Call to recv from 10.128.9.77<49212> failed : Connection timed out"
            ),
            Some((some("10.128.9.77"), "Connection timed out", false))
        );
        assert_eq!(read("Call to posix_fallocate failed : No space left on device"), None);
    }

    #[test]
    fn calls_and_queue_pairs() {
        assert_eq!(
            call("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1"),
            Some(("ibv_modify_qp", "110 Connection timed out, on dev mlx5_0:1"))
        );
        assert_eq!(
            call("Call to posix_fallocate failed : No space left on device"),
            Some(("posix_fallocate", "No space left on device"))
        );
        let qp = queue_pair("NET/IB: NCCL Dev 0 IbDev 1 Port 1 qpn 27510 mtu 5 query_ece={} GID 3 (0/1001F0AFFFF0000) fifoRkey=0x1").unwrap();
        assert_eq!((qp.device, qp.mtu, qp.gid_index), (1, 5, Some(3)));
        assert_eq!(qp.gid, "0/1001F0AFFFF0000");
    }
}
