//! Every foreign function's signature against the written facts; the loader against a real wheel.

use std::collections::BTreeMap;

use super::ffi;
use super::symbols::Signature;

/// A Rust type's letter in `signatures.tsv`.
fn letter(rust: &str) -> &'static str {
    let flat: String = rust.split_whitespace().collect();
    match flat.as_str() {
        "c_int" => "i",
        "c_uint" => "u",
        "u64" => "q",
        "usize" => "z",
        "UniqueId" => "s",
        "DevicePointer" => "d",
        "Comm" | "Context" | "Stream" | "Event" | "Module" | "Function" | "Graph" | "GraphExec" => {
            "h"
        }
        other if other.starts_with("*mut") => "p",
        other if other.starts_with("*const") => "P",
        other => panic!("no letter for `{other}`"),
    }
}

#[test]
fn every_signature_is_as_the_headers_have_it() {
    let facts: BTreeMap<&str, (&str, &str)> = include_str!("signatures.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let f: Vec<&str> = line.split('\t').collect();
            assert_eq!(f.len(), 4, "{line}");
            (f[0], (f[1], f[2]))
        })
        .collect();
    let ours: Vec<&Signature> =
        ffi::Nccl::SIGNATURES.iter().chain(ffi::Driver::SIGNATURES).collect();
    for (name, arguments, result) in &ours {
        let (want, gives) = facts.get(name).unwrap_or_else(|| panic!("no facts about {name}"));
        let letters: Vec<&str> = arguments.iter().map(|a| letter(a)).collect();
        assert_eq!(letters.join(" "), *want, "arguments of {name}");
        assert_eq!(letter(result), *gives, "result of {name}");
    }
    assert_eq!(ours.len(), facts.len(), "a fact about a function that is not used");
    assert_eq!(size_of::<ffi::UniqueId>(), 128);
    assert_eq!(align_of::<ffi::UniqueId>(), 1);
}

/// `NCCLCTL_TEST_WHEEL` names a libnccl of a wheel from PyPI; 350 MB are no default of a test.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own variable")]
fn a_real_library_loads_without_a_gpu() {
    let Ok(path) = std::env::var("NCCLCTL_TEST_WHEEL") else { return };
    let root = ncclctl_facts::Root::live();
    let loaded = super::library::nccl(Some(&path), &root).unwrap();
    assert!(loaded.version >= ncclctl_nccl::Version::new(2, 10, 0));
    assert!(loaded.path.ends_with("libnccl.so.2"), "{}", loaded.path);
    let size = super::config::size_of(loaded.version);
    let optional = [
        ("ncclCommInitRankConfig", loaded.functions.comm_init_rank_config.is_some(), (14, 3)),
        ("ncclGetLastError", loaded.functions.get_last_error.is_some(), (13, 4)),
        ("ncclMemAlloc", loaded.functions.mem_alloc.is_some(), (19, 1)),
        ("ncclCommRegister", loaded.functions.comm_register.is_some(), (19, 1)),
        ("ncclAlltoAll", loaded.functions.all_to_all.is_some(), (28, 3)),
    ];
    for (name, there, (minor, patch)) in optional {
        let since = ncclctl_nccl::Version::new(2, minor, patch);
        assert_eq!(there, loaded.version >= since, "{name} in {}", loaded.version);
    }
    assert_eq!(size.is_some(), loaded.functions.comm_init_rank_config.is_some());
    // the size is right when NCCL takes the struct: without a GPU it gets as far as CUDA
    let id = [0u8; 128];
    let joined = super::comm::Communicator::join(loaded.functions, loaded.version, &id, 0, 1);
    let error = joined.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(!error.contains("invalid argument"), "{error}");
}
