//! `gang-scheduling-missing`: a job that needs all its pods may get some of them.
//!
//! ## What
//!
//! A Volcano job whose `minAvailable` is under its number of pods (a warning), or with `--pedantic` a job
//! of several GPU pods without a sign of gang scheduling.
//!
//! ## Why
//!
//! NCCL waits for every rank. Pods that were placed hold their GPUs while they wait for those that were
//! not, and two such jobs may wait for each other for ever.
//!
//! ## Example
//!
//! `minAvailable is 1 of 3 pods`
//!
//! ## Remedy
//!
//! Write the number of all pods.
//!
//! ## Source
//!
//! Volcano: gang plug-in; Kueue; Kubernetes scheduling.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "gang-scheduling-missing",
        Severity::Info,
        "a job that needs all its pods may get some of them",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (index, pod) in set.pods.iter().enumerate() {
        let first = set.pods.iter().position(|p| p.file == pod.file && p.object == pod.object);
        let together = pod.together(set);
        let gpus = together.iter().any(|p| p.containers.iter().any(|c| c.gpu_spot().is_some()));
        if first != Some(index) || !gpus {
            continue;
        }
        let pods: u64 = together.iter().filter_map(|p| p.replicas).sum();
        if let Some((least, at)) = &pod.min_available {
            if *least < pods {
                findings.push(
                    set.say(
                        &RULE,
                        Confidence::Certain,
                        at,
                        format!("minAvailable is {least} of {pods} pods"),
                        "the job starts with some of its pods, and these wait for the others with their \
                         GPUs held",
                        format!("write minAvailable: {pods}"),
                    )
                    .at(Severity::Warning),
                );
            }
            continue;
        }
        let signs = [
            "volcano",
            "kueue",
            "pod-group",
            "podgroup",
            "gang",
            "coscheduling",
            "kai",
            "run.ai",
            "yunikorn",
        ];
        let gang = pod.scheduler.as_ref().is_some_and(|s| s.text != "default-scheduler")
            || pod
                .labels
                .iter()
                .chain(&pod.annotations)
                .chain(&pod.owner_marks)
                .any(|(k, _)| signs.iter().any(|s| k.text.contains(s)));
        if set.pedantic && pod.several(set) && !gang {
            findings.push(set.say(
                &RULE,
                Confidence::Possible,
                &pod.owner.at,
                format!("{} has {pods} pods and no gang scheduling", pod.title()),
                "without it some pods may hold GPUs while the others wait for room",
                "label the job for Kueue (kueue.x-k8s.io/queue-name), or use a gang scheduler",
            ));
        }
    }
}
