//! Manifests: a ConfigMap, a patch of a pod template, and where they are wanted a Secret, a
//! DaemonSet, and the list of images to copy.

use std::fmt::Write as _;

use ncclctl_nccl::conf::CONF_FILE_SINCE;
use ncclctl_plan::result::NeedKind;

use super::yaml::{block, quoted, scalar};
use super::{Affinity, File, Kind, Work, common, conf, differs_by_node, header, needs, shm_gib};

/// Where an init container or DaemonSet leaves the file of the node.
const FOLDER: &str = "/run/nccl";

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let choice = work.choice;
    let mut files = vec![config_map(work), patch(work)];
    if choice.psk {
        files.push(secret(work));
    }
    if choice.daemonset {
        files.push(daemonset(work));
    }
    if choice.mirrors.registry.is_some() {
        files.push(images(work));
    }
    files
}

/// Whether the node's own file is made where the pod lands.
fn on_the_node(work: Work<'_>) -> bool {
    work.choice.daemonset || by_init(work)
}

/// Whether an init container makes it; a DaemonSet takes that from it.
fn by_init(work: Work<'_>) -> bool {
    !work.choice.daemonset && (work.choice.init || differs_by_node(work.plan))
}

fn metadata(text: &mut String, work: Work<'_>, name: &str) {
    let _ = writeln!(text, "metadata:\n  name: {name}");
    if let Some(namespace) = &work.choice.namespace {
        let _ = writeln!(text, "  namespace: {}", scalar(namespace));
    }
    text.push_str("  labels:\n    app.kubernetes.io/managed-by: ncclctl\n");
}

fn config_map(work: Work<'_>) -> File {
    let (plan, choice) = (work.plan, work.choice);
    let mut text = String::new();
    header(&mut text, Kind::Kubernetes, plan);
    text.push_str(
        "# mounted by subPath, the file of a running pod never follows a change here: restart the pods\n",
    );
    text.push_str("apiVersion: v1\nkind: ConfigMap\n");
    metadata(&mut text, work, "nccl");
    text.push_str("data:\n");
    let settings: Vec<_> =
        if on_the_node(work) { plan.settings.iter().collect() } else { common(plan) };
    let _ = write!(text, "  nccl.conf: {}", block(&conf::text(work, &settings), 4));
    if let Some(xml) = &choice.topology {
        let _ = write!(text, "  topology.xml: {}", block(xml, 4));
    }
    File { path: "nccl-configmap.yaml".to_owned(), text }
}

fn patch(work: Work<'_>) -> File {
    let (plan, choice) = (work.plan, work.choice);
    let mut text = String::new();
    header(&mut text, Kind::Kubernetes, plan);
    for need in &plan.needs {
        let _ = writeln!(text, "# {}: {}", need.what, need.why);
    }
    text.push_str("# use: kubectl patch KIND/NAME --patch-file nccl-pod-patch.yaml (Deployment, StatefulSet, Job template)\n");
    let rdma = needs(plan, NeedKind::RdmaDevices);
    text.push_str("spec:\n  template:\n");
    if let Some(network) = choice.rdma_network.as_ref().filter(|_| rdma) {
        let _ = writeln!(
            text,
            "    metadata:\n      annotations:\n        k8s.v1.cni.cncf.io/networks: {}",
            scalar(network)
        );
    } else if rdma {
        text.push_str("    # RoCE needs an RDMA CNI: annotation k8s.v1.cni.cncf.io/networks (--rdma-network NAME)\n");
    }
    text.push_str("    spec:\n      automountServiceAccountToken: false\n");
    if choice.root {
        text.push_str("      # UID 0 was asked for\n");
    } else {
        text.push_str("      securityContext:\n        runAsNonRoot: true\n        runAsUser: 1000\n        runAsGroup: 1000\n        fsGroup: 1000\n        seccompProfile: {type: RuntimeDefault}\n");
    }
    affinity(&mut text, choice.affinity);
    if by_init(work) {
        init(&mut text, work);
    }
    let _ = writeln!(text, "      containers:\n      - name: {}", scalar(&choice.name));
    text.push_str("        securityContext:\n          allowPrivilegeEscalation: false\n          capabilities:\n            drop: [ALL]\n");
    if choice.root && needs(plan, NeedKind::LockedMemory) {
        text.push_str("            add: [IPC_LOCK]\n");
    }
    let mut limits: Vec<String> = Vec::new();
    if plan.gpus > 0 {
        limits.push(format!("nvidia.com/gpu: {}", plan.gpus));
    }
    if rdma {
        limits.push(format!("{}: 1", scalar(&choice.rdma_resource)));
    }
    if !limits.is_empty() {
        text.push_str("        resources:\n          limits:\n");
        for limit in limits {
            let _ = writeln!(text, "            {limit}");
        }
    }
    mounts(&mut text, work);
    volumes(&mut text, work);
    File { path: "nccl-pod-patch.yaml".to_owned(), text }
}

fn affinity(text: &mut String, affinity: Affinity) {
    let expression = "{key: rdma, operator: In, values: [available]}";
    let _ = match affinity {
        Affinity::Absent => Ok(()),
        Affinity::Required => writeln!(
            text,
            "      affinity:\n        nodeAffinity:\n          \
             requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n            \
             - matchExpressions:\n              - {expression}"
        ),
        Affinity::Preferred => writeln!(
            text,
            "      affinity:\n        nodeAffinity:\n          \
             preferredDuringSchedulingIgnoredDuringExecution:\n          - weight: 100\n            \
             preference:\n              matchExpressions:\n              - {expression}"
        ),
    };
}

/// Plans for the node that the pod landed on, within what the job decided.
fn init(text: &mut String, work: Work<'_>) {
    let choice = work.choice;
    text.push_str("      initContainers:\n      - name: nccl-conf\n");
    let _ = writeln!(text, "        image: {}", scalar(&choice.mirrors.image(&choice.tool_image)));
    let _ = writeln!(
        text,
        "        # an init container can not set the environment of another: it leaves a file\n        \
         command: [ncclctl, render, conf, --job, /etc/ncclctl/nccl.conf, --nccl, {}, --dir, {FOLDER}]",
        quoted(&work.plan.nccl.to_string())
    );
    text.push_str("        securityContext:\n          allowPrivilegeEscalation: false\n          readOnlyRootFilesystem: true\n          capabilities:\n            drop: [ALL]\n");
    if needs(work.plan, NeedKind::RdmaDevices) {
        text.push_str("        resources:\n          limits:\n");
        let _ = writeln!(text, "            {}: 1", scalar(&choice.rdma_resource));
    }
    text.push_str("        volumeMounts:\n");
    let _ = writeln!(text, "        - {{name: nccl-node, mountPath: {FOLDER}}}");
    text.push_str("        - {name: nccl, mountPath: /etc/ncclctl, readOnly: true}\n");
}

fn mounts(text: &mut String, work: Work<'_>) {
    let (plan, choice) = (work.plan, work.choice);
    let named = on_the_node(work) && plan.nccl >= CONF_FILE_SINCE;
    if named || choice.psk {
        text.push_str("        env:\n");
        if named {
            let _ = writeln!(text, "        - {{name: NCCL_CONF_FILE, value: {FOLDER}/nccl.conf}}");
        }
        if choice.psk {
            text.push_str("        - name: NCCL_PSK\n          valueFrom:\n            secretKeyRef: {name: nccl-psk, key: psk}\n");
        }
    }
    text.push_str("        volumeMounts:\n");
    if shm_gib(plan).is_some() {
        text.push_str("        - {name: shm, mountPath: /dev/shm}\n");
    }
    if named {
        let _ =
            writeln!(text, "        - {{name: nccl-node, mountPath: {FOLDER}, readOnly: true}}");
    } else if on_the_node(work) {
        // NCCL_CONF_FILE is not known to this release
        text.push_str("        - {name: nccl-node, mountPath: /etc/nccl.conf, subPath: nccl.conf, readOnly: true}\n");
    } else {
        text.push_str("        - {name: nccl, mountPath: /etc/nccl.conf, subPath: nccl.conf, readOnly: true}\n");
    }
    if choice.topology.is_some() {
        text.push_str("        - {name: nccl, mountPath: /etc/nccl-topology.xml, subPath: topology.xml, readOnly: true}\n");
    }
}

fn volumes(text: &mut String, work: Work<'_>) {
    let (plan, choice) = (work.plan, work.choice);
    text.push_str("      volumes:\n");
    if let Some(size) = shm_gib(plan) {
        let _ = writeln!(
            text,
            "      - name: shm\n        emptyDir: {{medium: Memory, sizeLimit: {size}Gi}}"
        );
    }
    if on_the_node(work) {
        if choice.daemonset {
            text.push_str("      # kept there by the DaemonSet\n      - name: nccl-node\n        hostPath: {path: /var/lib/ncclctl, type: Directory}\n");
        } else {
            text.push_str("      - name: nccl-node\n        emptyDir: {sizeLimit: 1Mi}\n");
        }
    }
    text.push_str("      - name: nccl\n        configMap: {name: nccl}\n");
}

fn secret(work: Work<'_>) -> File {
    let mut text = String::new();
    header(&mut text, Kind::Kubernetes, work.plan);
    let namespace = work.choice.namespace.as_ref().map_or_else(String::new, |n| format!(" -n {n}"));
    let _ = writeln!(
        text,
        "# the key itself is never written to a file of a repository; fill it with\n\
         #   kubectl create secret generic nccl-psk{namespace} --from-file=psk=FILE \
         --dry-run=client -o yaml | kubectl apply -f -\n\
         # it must have 32 characters or more, and be the same for every process of the job"
    );
    text.push_str("apiVersion: v1\nkind: Secret\n");
    metadata(&mut text, work, "nccl-psk");
    text.push_str("type: Opaque\n");
    File { path: "nccl-secret.yaml".to_owned(), text }
}

fn daemonset(work: Work<'_>) -> File {
    let choice = work.choice;
    let mut text = String::new();
    header(&mut text, Kind::Kubernetes, work.plan);
    text.push_str(
        "# writes the nccl.conf of every node to /var/lib/ncclctl, within what the job decided.\n\
         # UID 0 because the folder is root's; no capability, no token, no other path of the host.\n",
    );
    text.push_str("apiVersion: apps/v1\nkind: DaemonSet\n");
    metadata(&mut text, work, "nccl-node");
    text.push_str("spec:\n  selector:\n    matchLabels: {app: nccl-node}\n  template:\n    metadata:\n      labels: {app: nccl-node}\n    spec:\n      automountServiceAccountToken: false\n      # the interfaces of the node are to be seen\n      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n      tolerations:\n      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n      initContainers:\n      - name: nccl-conf\n");
    let _ = writeln!(text, "        image: {}", scalar(&choice.mirrors.image(&choice.tool_image)));
    let _ = writeln!(
        text,
        "        command: [ncclctl, render, conf, --job, /etc/ncclctl/nccl.conf, --nccl, {}, --dir, {FOLDER}]",
        quoted(&work.plan.nccl.to_string())
    );
    text.push_str("        securityContext:\n          runAsUser: 0\n          allowPrivilegeEscalation: false\n          readOnlyRootFilesystem: true\n          capabilities:\n            drop: [ALL]\n          seccompProfile: {type: RuntimeDefault}\n        volumeMounts:\n");
    let _ = writeln!(text, "        - {{name: nccl-node, mountPath: {FOLDER}}}");
    text.push_str("        - {name: nccl, mountPath: /etc/ncclctl, readOnly: true}\n      containers:\n      - name: pause\n");
    let _ = writeln!(text, "        image: {}", scalar(&choice.mirrors.image(PAUSE)));
    text.push_str("        securityContext:\n          runAsNonRoot: true\n          runAsUser: 65535\n          allowPrivilegeEscalation: false\n          readOnlyRootFilesystem: true\n          capabilities:\n            drop: [ALL]\n          seccompProfile: {type: RuntimeDefault}\n        resources:\n          limits: {cpu: 10m, memory: 16Mi}\n      volumes:\n      - name: nccl-node\n        hostPath: {path: /var/lib/ncclctl, type: DirectoryOrCreate}\n      - name: nccl\n        configMap: {name: nccl}\n");
    File { path: "nccl-daemonset.yaml".to_owned(), text }
}

/// Keeps a pod alive and does nothing.
const PAUSE: &str = "registry.k8s.io/pause:3.10";

fn images(work: Work<'_>) -> File {
    let choice = work.choice;
    let mut text = String::from("#!/bin/sh\n");
    header(&mut text, Kind::Kubernetes, work.plan);
    text.push_str("# every image that is named, and how it gets to the mirror\nset -eu\n");
    let mut all = vec![choice.image.as_str(), choice.base.as_str(), choice.tool_image.as_str()];
    if choice.daemonset {
        all.push(PAUSE);
    }
    for image in all {
        if let Some(copy) = choice.mirrors.copy(image) {
            let _ = writeln!(text, "{copy}");
        }
    }
    File { path: "mirror-images.sh".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::super::{Affinity, Choice, Mirrors, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn manifests_of_one_kind_of_node() {
        let nodes = &nodes()[..1];
        let plan = plan(nodes, Request::default());
        let choice = Choice { affinity: Affinity::Required, ..Choice::default() };
        let files = super::write(Work { plan: &plan, nodes, choice: &choice });
        let all: Vec<String> = files.iter().map(|f| format!("== {}\n{}", f.path, f.text)).collect();
        insta::assert_snapshot!(all.join(""), @r"
        == nccl-configmap.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # mounted by subPath, the file of a running pod never follows a change here: restart the pods
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: nccl
          labels:
            app.kubernetes.io/managed-by: ncclctl
        data:
          nccl.conf: |
            # made by ncclctl render conf (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
            # renew it the same way; `ncclctl render conf --check` says whether it is up to date
            # every value of the environment wins over this file; the environment plug-in over both
            # gid-index: NCCL 2.18.5 takes entry 0 by default, RoCE v1 or link-local; this is the RoCE v2 entry with an IPv4 address
            NCCL_IB_GID_INDEX=3
        == nccl-pod-patch.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # 2 GPUs with compute and utility: NCCL asks the driver and NVML for links and peers
        # /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system error` when it is full
        # the RDMA device nodes: without them NCCL falls back to sockets without a message
        # unlimited locked memory: the limit is 64 KiB: registration of buffers fails
        # a network in which ranks reach each other: ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
        # use: kubectl patch KIND/NAME --patch-file nccl-pod-patch.yaml (Deployment, StatefulSet, Job template)
        spec:
          template:
            # RoCE needs an RDMA CNI: annotation k8s.v1.cni.cncf.io/networks (--rdma-network NAME)
            spec:
              automountServiceAccountToken: false
              securityContext:
                runAsNonRoot: true
                runAsUser: 1000
                runAsGroup: 1000
                fsGroup: 1000
                seccompProfile: {type: RuntimeDefault}
              affinity:
                nodeAffinity:
                  requiredDuringSchedulingIgnoredDuringExecution:
                    nodeSelectorTerms:
                    - matchExpressions:
                      - {key: rdma, operator: In, values: [available]}
              containers:
              - name: train
                securityContext:
                  allowPrivilegeEscalation: false
                  capabilities:
                    drop: [ALL]
                resources:
                  limits:
                    nvidia.com/gpu: 2
                    rdma/hca: 1
                volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: nccl, mountPath: /etc/nccl.conf, subPath: nccl.conf, readOnly: true}
              volumes:
              - name: shm
                emptyDir: {medium: Memory, sizeLimit: 2Gi}
              - name: nccl
                configMap: {name: nccl}
        ");
    }

    #[test]
    fn manifests_that_plan_on_the_node() {
        let nodes = nodes();
        let plan = plan(&nodes, Request { nccl: Some("2.27.5".parse().unwrap()), goal: None });
        let choice = Choice {
            init: true,
            psk: true,
            affinity: Affinity::Preferred,
            mirrors: Mirrors::parse("registry=reg.site").unwrap(),
            namespace: Some("ml".into()),
            rdma_network: Some("rdma-net".into()),
            ..Choice::default()
        };
        let mut files = super::write(Work { plan: &plan, nodes: &nodes, choice: &choice });
        let choice = Choice { daemonset: true, ..choice };
        files.push(super::daemonset(Work { plan: &plan, nodes: &nodes, choice: &choice }));
        let all: Vec<String> = files.iter().map(|f| format!("== {}\n{}", f.path, f.text)).collect();
        insta::assert_snapshot!(all.join(""), @r#"
        == nccl-configmap.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # mounted by subPath, the file of a running pod never follows a change here: restart the pods
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: nccl
          namespace: ml
          labels:
            app.kubernetes.io/managed-by: ncclctl
        data:
          nccl.conf: |
            # made by ncclctl render conf (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
            # renew it the same way; `ncclctl render conf --check` says whether it is up to date
            # every value of the environment wins over this file; the environment plug-in over both
            # nothing to set: NCCL's own defaults are right here
        == nccl-pod-patch.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # 2 GPUs with compute and utility: NCCL asks the driver and NVML for links and peers
        # /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system error` when it is full
        # the RDMA device nodes: without them NCCL falls back to sockets without a message
        # unlimited locked memory: the limit is 64 KiB: registration of buffers fails
        # a network in which ranks reach each other: ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
        # use: kubectl patch KIND/NAME --patch-file nccl-pod-patch.yaml (Deployment, StatefulSet, Job template)
        spec:
          template:
            metadata:
              annotations:
                k8s.v1.cni.cncf.io/networks: rdma-net
            spec:
              automountServiceAccountToken: false
              securityContext:
                runAsNonRoot: true
                runAsUser: 1000
                runAsGroup: 1000
                fsGroup: 1000
                seccompProfile: {type: RuntimeDefault}
              affinity:
                nodeAffinity:
                  preferredDuringSchedulingIgnoredDuringExecution:
                  - weight: 100
                    preference:
                      matchExpressions:
                      - {key: rdma, operator: In, values: [available]}
              initContainers:
              - name: nccl-conf
                image: reg.site/ncclctl/ncclctl:0.1.0
                # an init container can not set the environment of another: it leaves a file
                command: [ncclctl, render, conf, --job, /etc/ncclctl/nccl.conf, --nccl, "2.27.5", --dir, /run/nccl]
                securityContext:
                  allowPrivilegeEscalation: false
                  readOnlyRootFilesystem: true
                  capabilities:
                    drop: [ALL]
                resources:
                  limits:
                    rdma/hca: 1
                volumeMounts:
                - {name: nccl-node, mountPath: /run/nccl}
                - {name: nccl, mountPath: /etc/ncclctl, readOnly: true}
              containers:
              - name: train
                securityContext:
                  allowPrivilegeEscalation: false
                  capabilities:
                    drop: [ALL]
                resources:
                  limits:
                    nvidia.com/gpu: 2
                    rdma/hca: 1
                env:
                - {name: NCCL_CONF_FILE, value: /run/nccl/nccl.conf}
                - name: NCCL_PSK
                  valueFrom:
                    secretKeyRef: {name: nccl-psk, key: psk}
                volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: nccl-node, mountPath: /run/nccl, readOnly: true}
              volumes:
              - name: shm
                emptyDir: {medium: Memory, sizeLimit: 2Gi}
              - name: nccl-node
                emptyDir: {sizeLimit: 1Mi}
              - name: nccl
                configMap: {name: nccl}
        == nccl-secret.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # the key itself is never written to a file of a repository; fill it with
        #   kubectl create secret generic nccl-psk -n ml --from-file=psk=FILE --dry-run=client -o yaml | kubectl apply -f -
        # it must have 32 characters or more, and be the same for every process of the job
        apiVersion: v1
        kind: Secret
        metadata:
          name: nccl-psk
          namespace: ml
          labels:
            app.kubernetes.io/managed-by: ncclctl
        type: Opaque
        == mirror-images.sh
        #!/bin/sh
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # every image that is named, and how it gets to the mirror
        set -eu
        skopeo copy --all docker://registry.example/train:1 docker://reg.site/train:1
        skopeo copy --all docker://docker.io/nvidia/cuda:12.8.1-runtime-ubuntu24.04 docker://reg.site/nvidia/cuda:12.8.1-runtime-ubuntu24.04
        skopeo copy --all docker://ghcr.io/ncclctl/ncclctl:0.1.0 docker://reg.site/ncclctl/ncclctl:0.1.0
        == nccl-daemonset.yaml
        # made by ncclctl render kubernetes (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.27.5: RoCE
        # renew it the same way; `ncclctl render kubernetes --check` says whether it is up to date
        # writes the nccl.conf of every node to /var/lib/ncclctl, within what the job decided.
        # UID 0 because the folder is root's; no capability, no token, no other path of the host.
        apiVersion: apps/v1
        kind: DaemonSet
        metadata:
          name: nccl-node
          namespace: ml
          labels:
            app.kubernetes.io/managed-by: ncclctl
        spec:
          selector:
            matchLabels: {app: nccl-node}
          template:
            metadata:
              labels: {app: nccl-node}
            spec:
              automountServiceAccountToken: false
              # the interfaces of the node are to be seen
              hostNetwork: true
              dnsPolicy: ClusterFirstWithHostNet
              tolerations:
              - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
              initContainers:
              - name: nccl-conf
                image: reg.site/ncclctl/ncclctl:0.1.0
                command: [ncclctl, render, conf, --job, /etc/ncclctl/nccl.conf, --nccl, "2.27.5", --dir, /run/nccl]
                securityContext:
                  runAsUser: 0
                  allowPrivilegeEscalation: false
                  readOnlyRootFilesystem: true
                  capabilities:
                    drop: [ALL]
                  seccompProfile: {type: RuntimeDefault}
                volumeMounts:
                - {name: nccl-node, mountPath: /run/nccl}
                - {name: nccl, mountPath: /etc/ncclctl, readOnly: true}
              containers:
              - name: pause
                image: reg.site/pause:3.10
                securityContext:
                  runAsNonRoot: true
                  runAsUser: 65535
                  allowPrivilegeEscalation: false
                  readOnlyRootFilesystem: true
                  capabilities:
                    drop: [ALL]
                  seccompProfile: {type: RuntimeDefault}
                resources:
                  limits: {cpu: 10m, memory: 16Mi}
              volumes:
              - name: nccl-node
                hostPath: {path: /var/lib/ncclctl, type: DirectoryOrCreate}
              - name: nccl
                configMap: {name: nccl}
        "#);
    }
}
