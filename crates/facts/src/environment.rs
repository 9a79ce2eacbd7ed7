//! The process environment, as far as it decides what NCCL does, with secrets replaced.

use std::collections::BTreeMap;

/// Other variables that decide which library, device or place a process gets.
const OTHERS: [&str; 22] = [
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "GLOO_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
    "UCX_NET_DEVICES",
    "UCX_TLS",
    "OMPI_MCA_btl_tcp_if_include",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "KUBERNETES_SERVICE_HOST",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "HOME",
];

/// Prefixes of families that are kept as a whole.
const FAMILIES: [&str; 6] = ["NCCL_", "TORCH_NCCL_", "FI_", "OFI_NCCL_", "http", "HTTP"];

/// Words in a name that make its value a secret.
const SECRET_WORDS: [&str; 7] =
    ["PSK", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY"];

/// What is shown of a secret.
pub const SECRET: &str = "(secret)";

/// The variables that decide, secrets replaced.
pub fn relevant(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.iter()
        .filter(|(name, _)| {
            OTHERS.contains(&name.as_str()) || FAMILIES.iter().any(|f| name.starts_with(f))
        })
        .map(|(name, value)| (name.clone(), shown(name, value)))
        .collect()
}

/// A value as it may be shown: secrets by name are replaced, and passwords inside of URLs.
pub fn shown(name: &str, value: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if SECRET_WORDS.iter().any(|word| upper.contains(word)) && !value.is_empty() {
        return SECRET.to_owned();
    }
    without_userinfo(value)
}

/// `scheme://user:password@host` without what stands before the `@`.
fn without_userinfo(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        out.push_str(before);
        let end = after.find(['/', ',', ' ', '?']).unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(at) => {
                out.push_str(SECRET);
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_shown() {
        assert_eq!(shown("NCCL_PSK", "abc"), "(secret)");
        assert_eq!(shown("HF_TOKEN", "hf_x"), "(secret)");
        assert_eq!(shown("NCCL_DEBUG", "INFO"), "INFO");
        assert_eq!(
            shown("https_proxy", "http://me:pa%40ss@proxy.example:3128/x"),
            "http://(secret)@proxy.example:3128/x"
        );
        assert_eq!(shown("http_proxy", "http://proxy:3128"), "http://proxy:3128");
        assert_eq!(shown("no_proxy", "a,b"), "a,b");
    }
}
