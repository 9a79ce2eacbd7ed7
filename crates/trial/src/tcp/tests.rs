//! Whole engines as threads of one process, over the loopback.

use std::collections::BTreeMap;
use std::time::Duration;

use ncclctl_facts::net::{Address, Interface};
use ncclctl_nccl::{Collective, DataType, RedOp};

use super::*;

fn loopback() -> Vec<Interface> {
    vec![Interface {
        index: 1,
        name: "lo".to_owned(),
        running: true,
        addresses: vec![Address { ip: "127.0.0.1".parse().unwrap(), prefix: 8 }],
        ..Interface::default()
    }]
}

fn setup(rank: usize, ranks: usize, settings: &[(&str, &str)]) -> Setup {
    Setup {
        rank,
        ranks,
        nonce: [9; 16],
        settings: settings
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        largest: 1 << 20,
        gpu: None,
        deadline: Duration::from_secs(20),
        nccl: Default::default(),
    }
}

/// Runs `work` on every rank of a connected trial and returns what each returned.
fn trial<T: Send>(
    ranks: usize,
    settings: &[(&str, &str)],
    work: impl Fn(usize, &mut Tcp) -> T + Sync,
) -> Vec<T> {
    let engines = (0..ranks).map(|_| Tcp::with_interfaces(loopback())).collect();
    connected(engines, settings, |rank, engine, _| work(rank, engine))
}

/// Connects engines and runs `work` on each.
fn connected<T: Send>(
    mut engines: Vec<Tcp>,
    settings: &[(&str, &str)],
    work: impl Fn(usize, &mut Tcp, Connected) -> T + Sync,
) -> Vec<T> {
    let ranks = engines.len();
    let contacts: Vec<Contact> = engines
        .iter_mut()
        .enumerate()
        .map(|(rank, e)| e.open(&setup(rank, ranks, settings)).unwrap())
        .collect();
    let (work, contacts) = (&work, &contacts);
    std::thread::scope(|scope| {
        let threads: Vec<_> = engines
            .iter_mut()
            .enumerate()
            .map(|(rank, engine)| {
                scope.spawn(move || {
                    let connected = engine.connect(contacts).unwrap();
                    work(rank, engine, connected)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn case(collective: Collective, bytes: u64) -> Case {
    Case { collective, dtype: DataType::Float32, op: RedOp::Sum, root: 0, bytes, in_place: false }
}

/// Sizes around what cuts and rounds: nothing, one element, odd counts, more than a segment.
const SIZES: [u64; 6] = [0, 8, 1000, 40_000, 300_008, 2_500_000];

#[test]
fn every_collective_type_and_operation_is_right() {
    for ranks in 1..=5 {
        let wrong = trial(ranks, &[], |_, engine| {
            let mut wrong = Vec::new();
            for collective in Collective::ALL {
                for dtype in DataType::ALL {
                    let ops: &[RedOp] =
                        if collective.reduces() { &RedOp::ALL } else { &[RedOp::Sum] };
                    for &op in ops {
                        for bytes in [200, 17_000] {
                            for in_place in [false, true] {
                                if in_place && !collective.checked_in_place() {
                                    continue;
                                }
                                let root = ranks - 1;
                                let case = Case { collective, dtype, op, root, bytes, in_place };
                                let checked = engine.verify(&case).unwrap();
                                if checked.wrong != 0 {
                                    wrong.push((case, checked.wrong));
                                }
                            }
                        }
                    }
                }
            }
            wrong
        });
        for (rank, wrong) in wrong.into_iter().enumerate() {
            assert!(wrong.is_empty(), "rank {rank} of {ranks}: {:?}", wrong.first());
        }
    }
}

#[test]
fn every_size_and_root_is_right() {
    for ranks in [2, 3, 4, 5] {
        let wrong = trial(ranks, &[], |_, engine| {
            let mut wrong = 0;
            for collective in Collective::ALL {
                for bytes in SIZES {
                    for root in [0, ranks / 2] {
                        let c = Case { root, ..case(collective, bytes) };
                        wrong += engine.verify(&c).unwrap().wrong;
                        let c = Case { in_place: true, ..c };
                        if collective.checked_in_place() {
                            wrong += engine.verify(&c).unwrap().wrong;
                        }
                    }
                }
            }
            wrong
        });
        assert_eq!(wrong.iter().sum::<u64>(), 0, "{ranks} ranks: {wrong:?}");
    }
}

#[test]
fn threads_and_sockets_share_the_work() {
    let settings = [("NCCL_SOCKET_NTHREADS", "2"), ("NCCL_NSOCKS_PERTHREAD", "3")];
    let wrong = trial(3, &settings, |_, engine| {
        let mut wrong = 0;
        for collective in Collective::ALL {
            for bytes in SIZES {
                wrong += engine.verify(&case(collective, bytes)).unwrap().wrong;
            }
        }
        wrong
    });
    assert_eq!(wrong, [0, 0, 0]);
}

#[test]
fn several_interfaces_carry_one_edge() {
    let two = || {
        let mut list = loopback();
        list.push(Interface {
            name: "lo2".to_owned(),
            addresses: vec![Address { ip: "127.0.0.2".parse().unwrap(), prefix: 8 }],
            ..list[0].clone()
        });
        list
    };
    let settings = [("NCCL_SOCKET_IFNAME", "lo")];
    let engines = (0..3).map(|_| Tcp::with_interfaces(two())).collect();
    let edges = connected(engines, &settings, |_, engine, connected| {
        let checked = engine.verify(&case(Collective::AllReduce, 2_500_000)).unwrap();
        assert_eq!(checked.wrong, 0);
        assert_eq!(connected.interfaces.len(), 2);
        connected.edges
    });
    for edge in edges.into_iter().flatten() {
        assert_eq!(edge.connections, 2);
        assert_eq!(edge.nic.as_deref(), Some("lo"));
    }
}

#[test]
fn a_flipped_bit_is_counted_on_the_rank_that_has_it() {
    let mut engines: Vec<Tcp> = (0..3).map(|_| Tcp::with_interfaces(loopback())).collect();
    engines[1].flips = fault::flipping_rank(Some("flip-bit:1"));
    let wrong = connected(engines, &[], |_, engine, _| {
        Collective::ALL.map(|c| engine.verify(&case(c, 40_000)).unwrap().wrong)
    });
    assert_eq!((wrong[0], wrong[2]), ([0; 9], [0; 9]));
    for (collective, wrong) in Collective::ALL.into_iter().zip(wrong[1]) {
        // rank 1 is no root: it has no result of its own there
        let has_result = !matches!(collective, Collective::Reduce | Collective::Gather);
        assert_eq!(wrong, u64::from(has_result), "{collective}");
    }
}

#[test]
fn probes_count_what_arrives() {
    let probe = Probe { pairs: vec![(0, 1), (1, 0), (2, 0)], duration: Duration::from_millis(200) };
    let received = trial(4, &[], |_, engine| {
        let received = engine.probe(&probe).unwrap();
        // the links are clean afterwards
        assert_eq!(engine.verify(&case(Collective::AllToAll, 40_000)).unwrap().wrong, 0);
        received
    });
    let senders = |r: usize| received[r].iter().map(|x| x.from).collect::<Vec<_>>();
    assert_eq!(
        [senders(0), senders(1), senders(2), senders(3)],
        [vec![1, 2], vec![0], vec![], vec![]]
    );
    for r in received.iter().flatten() {
        assert!(r.rate_bps > 0.0 && r.seconds > 0.0 && r.round_trip_us.unwrap() > 0.0, "{r:?}");
    }
}

#[test]
fn a_batch_gives_one_figure_a_sample() {
    let times = trial(2, &[], |_, engine| {
        let batch = Batch { case: case(Collective::AllReduce, 4096), samples: 3, operations: 2 };
        let rate = engine.reduce_rate(&batch.case, Duration::from_millis(5)).unwrap();
        assert!(rate.unwrap() > 0.0);
        engine.run(&batch).unwrap()
    });
    for t in times {
        assert_eq!((t.samples_us.len(), t.algorithm.as_str()), (3, "recursive doubling"));
        assert!(t.samples_us.iter().all(|us| *us > 0.0));
    }
}

/// Two ranks with a short deadline, opened and not connected.
fn pair(nonces: [[u8; 16]; 2]) -> ([Tcp; 2], Vec<Contact>) {
    let mut engines = [(); 2].map(|()| Tcp::with_interfaces(loopback()));
    let contacts = engines
        .iter_mut()
        .zip(nonces)
        .enumerate()
        .map(|(rank, (engine, nonce))| {
            let deadline = Duration::from_millis(700);
            engine.open(&Setup { nonce, deadline, ..setup(rank, 2, &[]) }).unwrap()
        })
        .collect();
    (engines, contacts)
}

fn both<T: Send>(engines: &mut [Tcp; 2], work: impl Fn(usize, &mut Tcp) -> T + Sync) -> [T; 2] {
    let (work, [a, b]) = (&work, engines);
    std::thread::scope(|scope| {
        let other = scope.spawn(move || work(1, b));
        [work(0, a), other.join().unwrap()]
    })
}

#[test]
fn another_trials_nonce_is_refused() {
    let (mut engines, contacts) = pair([[1; 16], [2; 16]]);
    for (rank, error) in both(&mut engines, |_, e| e.connect(&contacts)).into_iter().enumerate() {
        let error = error.unwrap_err();
        assert_eq!((error.kind, error.peer), (ErrorKind::Unreachable, Some(1 - rank)));
        assert!(error.message.contains("turned away"), "{}", error.message);
    }
}

#[test]
fn a_port_where_nobody_listens_is_named() {
    let (engines, contacts) = pair([[1; 16]; 2]);
    let [mut first, second] = engines;
    drop(second);
    let error = first.connect(&contacts).unwrap_err();
    assert_eq!((error.kind, error.peer), (ErrorKind::Unreachable, Some(1)));
    let where_ = contacts[1].shown.split(' ').next().unwrap();
    assert!(error.message.contains(where_) && error.message.contains("refused"), "{error}");
}

#[test]
fn a_peer_that_closes_or_stalls_is_named_in_time() {
    for closes in [true, false] {
        let (mut engines, contacts) = pair([[1; 16]; 2]);
        let _ = both(&mut engines, |_, e| e.connect(&contacts).unwrap());
        let [mut first, second] = engines;
        let kept = if closes {
            drop(second);
            None
        } else {
            Some(second)
        };
        let batch = Batch { case: case(Collective::AllReduce, 1 << 24), samples: 1, operations: 1 };
        let begin = Instant::now();
        let error = first.run(&batch).unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!((error.kind, error.peer), (ErrorKind::PeerLost, Some(1)), "{error}");
        let seen = if closes { "closed" } else { "nothing came from it" };
        assert!(error.message.contains(seen) || error.message.contains("reset"), "{error}");
        drop(kept);
    }
}

#[test]
fn strangers_do_not_keep_a_trial_from_connecting() {
    use std::io::Write;
    let (mut engines, contacts) = pair([[1; 16]; 2]);
    let address = contacts[0].shown.split(' ').next().unwrap();
    let mut strangers = Vec::new();
    for i in 0..600 {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        match i % 3 {
            0 => {}
            1 => drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: whatever\r\nAccept: */*\r\n\r\n")),
            _ => drop(stream.write_all(b"ncclctl1")),
        }
        strangers.push(stream);
    }
    let checked = both(&mut engines, |_, e| {
        e.connect(&contacts).unwrap();
        e.verify(&case(Collective::AllReduce, 4096)).unwrap().wrong
    });
    assert_eq!(checked, [0, 0]);
}

#[test]
fn settings_that_differ_between_ranks_are_named() {
    let mut engines = [(); 2].map(|()| Tcp::with_interfaces(loopback()));
    let threads = ["1", "2"];
    let contacts: Vec<Contact> = engines
        .iter_mut()
        .enumerate()
        .map(|(r, e)| e.open(&setup(r, 2, &[("NCCL_SOCKET_NTHREADS", threads[r])])).unwrap())
        .collect();
    let error = engines[0].connect(&contacts).unwrap_err();
    assert_eq!((error.kind, error.peer), (ErrorKind::Setting, Some(1)));
    insta::assert_snapshot!(error.message, @"rank 1 has 2 threads × 1 sockets, this rank 1 × 1: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD must be equal on all ranks");
}

#[test]
fn no_interface_is_a_failure_of_its_own_kind() {
    let mut engine = Tcp::with_interfaces(loopback());
    let error = engine.open(&setup(0, 1, &[("NCCL_SOCKET_IFNAME", "l*")])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoInterface);
    assert!(error.message.contains("write l (matches lo)"), "{error}");
}
