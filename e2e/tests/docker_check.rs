//! What is said of containers and images, against a real engine: `facts` inside of them, `check` and
//! `vars --in-force` inside and from outside.

use std::process::{Command, Output};

use e2e::binary;
use e2e::docker::{Engine, IMAGE};
use serde_json::Value;

fn docker(engine: &Engine, args: &[&str]) -> Output {
    engine.docker(args).output().unwrap()
}

fn done(engine: &Engine, args: &[&str]) -> String {
    let out = docker(engine, args);
    assert!(out.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// The facts that a container with these options sees.
fn facts(engine: &Engine, options: &[&str]) -> Value {
    let args = [&["run", "--rm"], options, &[IMAGE, "facts", "-o", "json"]].concat();
    let all: Value = serde_json::from_str(&done(engine, &args)).unwrap();
    all["facts"][0].clone()
}

fn ncclctl(engine: &Engine, args: &[&str]) -> (Option<i32>, Value, String) {
    let mut command: Command = binary::command(args);
    command.env("DOCKER_HOST", format!("unix://{}", engine.socket().display()));
    let out = command.output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), serde_json::from_slice(&out.stdout).unwrap_or(Value::Null), error)
}

fn state<'a>(checks: &'a Value, name: &str) -> &'a str {
    let all = checks["checks"].as_array().unwrap();
    let found = all.iter().find(|c| c["name"] == name);
    found.and_then(|c| c["state"].as_str()).unwrap_or("absent")
}

#[test]
fn facts_of_real_containers() {
    let engine = match Engine::start() {
        Ok(engine) => engine,
        Err(why) => return e2e::skipped("facts_of_real_containers", &why),
    };
    let plain = facts(&engine, &[]);
    let c = &plain["container"];
    assert_eq!(c["runtime"], "docker", "{c}");
    assert_eq!(c["shm"], 64 << 20, "{c}");
    assert_eq!(c["sys_read_only"], true, "{c}");
    assert_eq!(c["memory_policy"], false, "the default profile refuses it: {c}");
    assert_eq!(c["host"]["pid"], false, "{c}");
    let names = |facts: &Value| -> Vec<String> {
        let all = facts["interfaces"].as_array().unwrap();
        all.iter().map(|i| i["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&plain), ["lo", "eth0"]);
    assert_eq!(plain["interfaces"][1]["kind"], "veth");

    let host = facts(&engine, &["--network", "host", "--pid", "host", "--ipc", "host"]);
    assert!(names(&host).contains(&"docker0".to_owned()), "{:?}", names(&host));
    assert_eq!(host["container"]["host"]["pid"], true);

    let bare = facts(
        &engine,
        &["--user", "1000:1000", "--cap-drop", "ALL", "--read-only", "--shm-size", "16m"],
    );
    let c = &bare["container"];
    assert_eq!(c["user"], 1000);
    assert_eq!(c["capabilities"].as_array().map(Vec::len), Some(0), "{c}");
    assert_eq!(c["shm"], 16 << 20);

    let given = facts(
        &engine,
        &[
            "--cap-add",
            "SYS_NICE",
            "--cap-add",
            "IPC_LOCK",
            "--memory",
            "256m",
            "--cpus",
            "1.5",
            "--network",
            "none",
        ],
    );
    let c = &given["container"];
    assert_eq!(c["memory_policy"], true, "{c}");
    assert!(c["capabilities"].to_string().contains("IPC_LOCK"), "{c}");
    assert_eq!(c["memory_limit"], 256 << 20);
    assert_eq!(c["cpu_quota"], 1.5);
    assert_eq!(names(&given), ["lo"]);

    let open = facts(&engine, &["--security-opt", "seccomp=unconfined"]);
    assert_eq!(open["container"]["seccomp"], "off");
    assert_eq!(open["container"]["memory_policy"], true);
}

#[test]
fn checks_and_layers_of_real_containers() {
    let engine = match Engine::start() {
        Ok(engine) => engine,
        Err(why) => return e2e::skipped("checks_and_layers_of_real_containers", &why),
    };
    // an image with a library by name, a value that NCCL reads otherwise, and a user of its own
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("libnccl.so.2.21.5", "");
    write("nccl.conf", "NCCL_IB_TIMEOUT=21\nNCCL_DEBUG=WARN\nNCCL_NTHREADS=256\n");
    write("job.env", "NCCL_DEBUG=INFO\nNCCL_IB_RETRY_CNT=7\n");
    write(
        "Dockerfile",
        &format!(
            "FROM {IMAGE}\nCOPY libnccl.so.2.21.5 /usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5\nCOPY libnccl.so.2.21.5 /usr/lib/x86_64-linux-gnu/libnccl.so.2\n\
             COPY nccl.conf /etc/nccl.conf\nENV NCCL_IB_TIMEOUT=20 NCCL_IB_DISABLE=true NCCL_IB_RETRY_CNT=5\nUSER 65532\n"
        ),
    );
    let path = folder.path().to_str().unwrap();
    done(&engine, &["build", "-q", "-t", "train:1", path]);
    let (code, image, error) = ncclctl(&engine, &["check", "image", "train:1", "-o", "json"]);
    assert_eq!(code, Some(1), "NCCL_IB_DISABLE=true is read as 0: {error}");
    assert_eq!(state(&image, "libnccl"), "ok", "{image}");
    assert_eq!(state(&image, "verbs"), "warning", "{image}");
    assert_eq!(state(&image, "env-value-misread"), "fail", "{image}");
    assert_eq!(done(&engine, &["ps", "-aq"]), "", "nothing is left of looking");

    let file = format!("{path}/job.env");
    let made = [
        "create",
        "--name",
        "train",
        "--env-file",
        &file,
        "-e",
        "NCCL_IB_TIMEOUT=22",
        "-e",
        "NCCL_IB_DISABLE=0",
        "--ulimit",
        "memlock=65536",
        "train:1",
        "show",
    ];
    done(&engine, &made);
    let (code, train, error) = ncclctl(&engine, &["check", "docker", "train", "-o", "json"]);
    assert_eq!(code, Some(1), "{error}");
    assert_eq!(state(&train, "gpus"), "fail", "{train}");
    assert_eq!(state(&train, "numa policy"), "warning", "{train}");
    let (code, _, error) = ncclctl(&engine, &["check", "docker", "nobody"]);
    assert_eq!(code, Some(4));
    assert!(error.contains("nobody"), "{error}");

    // which value NCCL would see, told from outside
    let (_, outside, error) = ncclctl(
        &engine,
        &["vars", "--in-force", "--container", "train", "--nccl", "2.27.5", "-o", "json"],
    );
    let value = |all: &Value, name: &str| {
        let found =
            all["in_force"].as_array().into_iter().flatten().find(|s| s["name"] == name).cloned();
        let found = found.unwrap_or_else(|| panic!("{name} is in force: {all} {error}"));
        found["value"].as_str().unwrap().to_owned()
    };
    // and by the program that runs inside, with the very same options
    let inside = |options: &[&str]| -> Value {
        let run = [
            &["run", "--rm"],
            options,
            &["train:1", "vars", "--in-force", "--nccl", "2.27.5", "-o", "json"],
        ]
        .concat();
        serde_json::from_slice(&docker(&engine, &run).stdout).unwrap()
    };
    let all = ["--env-file", &file, "-e", "NCCL_IB_TIMEOUT=22", "-e", "NCCL_IB_DISABLE=0"];
    let seen = inside(&all);
    for (name, wanted) in [
        ("NCCL_IB_TIMEOUT", "22"),  // -e over the image, the image over nccl.conf
        ("NCCL_IB_RETRY_CNT", "7"), // the env file over the image
        ("NCCL_DEBUG", "INFO"),     // the env file over nccl.conf
        ("NCCL_NTHREADS", "256"),   // nccl.conf alone
    ] {
        assert_eq!(value(&outside, name), wanted, "{name} from outside");
        assert_eq!(value(&seen, name), wanted, "{name} inside");
    }
    let seen = inside(&[]);
    assert_eq!(value(&seen, "NCCL_IB_TIMEOUT"), "20", "the image over nccl.conf");
    assert_eq!(value(&seen, "NCCL_DEBUG"), "WARN", "nccl.conf alone");
    let conf = format!("{path}/other.conf:/etc/nccl.conf:ro");
    write("other.conf", "NCCL_DEBUG=VERSION\n");
    let seen = inside(&["-v", &conf]);
    assert_eq!(value(&seen, "NCCL_DEBUG"), "VERSION", "a mounted file in place of the image's");
    let seen = inside(&["-v", &conf, "--env-file", &file, "-e", "NCCL_DEBUG=TRACE"]);
    assert_eq!(value(&seen, "NCCL_DEBUG"), "TRACE", "-e over the env file over all files");
}
