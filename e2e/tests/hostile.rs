//! Strangers at the coordinator's port: refused or bounded, and the trial goes on.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use e2e::binary::{command, start};

const LIMIT: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn wait_for(port: u16) {
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody listens on {port}");
}

#[test]
fn a_trial_goes_on_among_strangers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let token = folder.path().join("token");
    let token = token.to_str().expect("UTF-8 path");
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let coordinator = start(command([
        "bench",
        "--listen",
        &address,
        "--workers",
        "2",
        "--token-file",
        token,
        "-b",
        "1K",
        "-e",
        "64K",
        "-n",
        "20",
        "--no-verdict",
    ]));
    wait_for(port);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.current.unwrap_or(1024).saturating_sub(200).min(5000);
    let mut strangers: Vec<TcpStream> =
        (0..most).filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok()).collect();
    assert!(strangers.len() > 500, "only {} connections could be opened", strangers.len());
    for (number, stranger) in strangers.iter_mut().enumerate() {
        // a web client, the start of a TLS hello, one byte at a time, zeros, or nothing at all
        let says: &[u8] = match number % 5 {
            0 => b"GET / HTTP/1.1\r\n\r\n",
            1 => &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01],
            2 => b"\x16",
            3 => &[0; 512],
            _ => b"",
        };
        let _ = stranger.write_all(says);
    }
    // somebody with the token of another run
    let other = folder.path().join("other");
    std::fs::write(&other, "ab".repeat(32)).expect("written");
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("mode");
    let imposter = start(command([
        "worker",
        "--join",
        &address,
        "--token-file",
        other.to_str().expect("UTF-8 path"),
        "--join-timeout",
        "5s",
    ]));
    let workers: Vec<_> = (0..2)
        .map(|number| {
            let name = format!("w{number}");
            start(command(["worker", "--join", &address, "--token-file", token, "--name", &name]))
        })
        .collect();
    let finished = coordinator.finish(LIMIT);
    finished.expect_code(0);
    for worker in workers {
        worker.finish(LIMIT).expect_code(0);
    }
    let imposter = imposter.finish(LIMIT);
    imposter.expect_code(4);
    assert!(imposter.stderr.contains("token"), "{}", imposter.stderr);
    drop(strangers);
}

#[test]
fn the_token_is_never_shown() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let token = folder.path().join("token");
    let path = token.to_str().expect("UTF-8 path");
    let save = folder.path().join("run.json");
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let coordinator = start(command([
        "bench",
        "--listen",
        &address,
        "--workers",
        "1",
        "--token-file",
        path,
        "-b",
        "1K",
        "-e",
        "1K",
        "-n",
        "5",
        "-o",
        "json",
        "--save",
        save.to_str().expect("UTF-8 path"),
    ]));
    wait_for(port);
    let mut worker = command(["worker", "--join", &address]);
    let secret = std::fs::read_to_string(&token).expect("the token file is there");
    worker.env("NCCLCTL_TOKEN", secret.trim());
    let worker = start(worker).finish(LIMIT);
    let finished = coordinator.finish(LIMIT);
    let saved = std::fs::read_to_string(&save).expect("saved");
    for (what, text) in [
        ("stdout", &finished.stdout),
        ("stderr", &finished.stderr),
        ("the worker's stdout", &worker.stdout),
        ("the worker's stderr", &worker.stderr),
        ("the saved result", &saved),
    ] {
        assert!(!text.contains(secret.trim()), "{what} shows the token");
    }
}
