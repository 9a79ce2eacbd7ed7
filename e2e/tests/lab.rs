//! The lab itself: what the other tests stand on.

use e2e::lab::Lab;

#[test]
fn hosts_reach_each_other_and_a_cut_host_does_not() {
    let lab = match Lab::new(2, "1gbit") {
        Ok(lab) => lab,
        Err(why) => return e2e::skipped("lab", &why),
    };
    let peer = lab.address(1, "eth0");
    let ping = |from| {
        lab.program(from, "bash")
            .args(["-c", "exec 3<>/dev/tcp/$0/9 2>&1", &peer])
            .output()
            .map(|out| {
                String::from_utf8_lossy(&out.stdout).into_owned()
                    + &String::from_utf8_lossy(&out.stderr)
            })
            .unwrap_or_default()
    };
    // nobody listens: a refusal proves that the packet arrived and the answer came back
    assert!(ping(0).contains("refused"), "{}", ping(0));
    lab.cut(1);
    let cut = lab
        .program(0, "timeout")
        .args(["1", "bash", "-c", "exec 3<>/dev/tcp/$0/9", &peer])
        .status()
        .expect("timeout runs");
    assert_eq!(cut.code(), Some(124), "a cut host must neither answer nor refuse");
    assert!(lab.processes().is_empty());
}

#[test]
fn an_engine_of_its_own_starts_and_leaves_nothing() {
    let engine = match e2e::docker::Engine::start() {
        Ok(engine) => engine,
        Err(why) => return e2e::skipped("docker engine", &why),
    };
    let version = engine
        .docker(["run", "--rm", e2e::docker::IMAGE, "--version"])
        .output()
        .expect("docker runs");
    assert!(version.status.success(), "{}", String::from_utf8_lossy(&version.stderr));
    let socket = engine.socket();
    drop(engine);
    assert!(!socket.exists());
}
