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
    }
}

/// Runs `work` on every rank of a connected trial and returns what each returned.
fn trial<T: Send>(
    ranks: usize,
    settings: &[(&str, &str)],
    work: impl Fn(usize, &mut Tcp) -> T + Sync,
) -> Vec<T> {
    let mut engines: Vec<Tcp> = (0..ranks).map(|_| Tcp::with_interfaces(loopback())).collect();
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
                    engine.connect(contacts).unwrap();
                    work(rank, engine)
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
                        for bytes in [1000, 40_000] {
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
