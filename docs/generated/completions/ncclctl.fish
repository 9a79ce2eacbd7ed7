# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ncclctl_global_optspecs
    string join \n q/quiet h/help V/version
end

function __fish_ncclctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ncclctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ncclctl_using_subcommand
    set -l cmd (__fish_ncclctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ncclctl -n "__fish_ncclctl_needs_command" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "bench" -d 'Measure: real ranks, real traffic, and a verdict'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "worker" -d 'Take part in a trial that is coordinated elsewhere'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "show" -d 'Show a saved result again, in any format'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "explain" -d 'Say why a run was slow, hung or failed, from anything that it left behind'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "plan" -d 'Say which settings are needed here, and why'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "render" -d 'Write files from a plan: env file, nccl.conf, Compose, manifests, Dockerfile'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "exec" -d 'Set what is needed here and the user has not set, and become the program'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "lint" -d 'Find mistakes in Dockerfiles, Compose files, manifests, env files, before anything runs'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "facts" -d 'What this node or container really has, and what it can not see'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "check" -d 'Is this container, another one or an image fit for NCCL'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "vars" -d 'Look variables of NCCL up, and see which values are in force'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "deploy" -d 'Measure in containers of a Docker engine'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "status" -d 'Show the runs that `deploy` made'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "logs" -d 'Print what the containers of a run wrote'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "cleanup" -d 'Remove what a run left'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "rank" -d 'One rank of a trial; started by a worker'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "completions" -d 'Write shell completions to standard output'
complete -c ncclctl -n "__fish_ncclctl_needs_command" -f -a "man" -d 'Write a manual page to standard output'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s b -l minbytes -d 'Least size' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s e -l maxbytes -d 'Greatest size' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s f -l stepfactor -d 'Factor between sizes' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s i -l stepbytes -d 'Bytes between sizes, instead of a factor' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s n -l iters -d 'Operations a size, instead of repeating until precise' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s w -l warmup-iters -d 'Warm-up operations a size, instead of warming up until steady' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s c -l check -d 'Check results: 0 no, 1 yes' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s d -l datatype -d 'Element type, or `all`' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s N -l run-cycles -d 'How often to run everything' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l op -d 'Reduction: sum, prod, min, max, avg or `all`' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s r -l root -d 'Root of broadcast, reduce, gather and scatter' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l collective -d 'Collective, repeatable, or `all`: all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l ranks -d 'Ranks on this machine [default: the number of GPUs; 2 without GPUs]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l engine -d 'What moves the bytes: auto (nccl where there is a GPU, else tcp), nccl, tcp' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l listen -d 'Wait here for workers on other machines' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l workers -d 'Workers to wait for' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l token-file -d 'File with the join token; made (0600) if it does not exist' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l sweep-workers -d 'Run on the first N workers too, for each N: a scaling table' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l env -l nccl-env -d 'NCCL setting for the ranks, repeatable; wins over the environment' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l env-file -d 'NCCL settings from a file, by Docker\'s rules' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l ifname -d 'Interfaces, as NCCL_SOCKET_IFNAME: prefixes, `=` for exact names, `^` to exclude; no wildcards' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l algo -d 'Algorithm, as NCCL_ALGO' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l proto -d 'Protocol, as NCCL_PROTO' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l nccl -d 'Load this libnccl and no other' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l nccl-log -d 'Where NCCL\'s log goes besides the evidence: stderr, off, or a file name (%h host, %r rank)' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l threshold -d 'Pass from this share of what is expected' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l line-rate -d 'What every NIC was bought for, bits per second, like 100G' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l time-limit -d 'Time for all sizes together' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l precision -d 'Wanted half width of the 95% confidence interval' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l deadline -d 'Who says nothing for this long is lost' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l join-timeout -d 'How long to wait for workers to join' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s o -l output -d 'Output format' -r -f -a "table\t'nccl-tests\' table, then the verdict as comment lines'
json\t'One JSON document with everything'
jsonl\t'Events as JSON, one a line, while they happen; the result last'
csv\t'One line a size'
junit\t'JUnit XML'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l save -d 'Write everything that was measured to a file, for `ncclctl show`' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l share-gpu -d 'Several ranks on one GPU, over sockets: a test mode'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l graph -d 'Launch operations as CUDA graphs'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l register -d 'Register the buffers with NCCL'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l no-nccl-diagnostics -d 'Do not run NCCL\'s built-in diagnostics (2.31 and later)'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l strict -d 'Inconclusive results fail'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -l no-verdict -d 'Only measure'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand bench" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -l join -d 'Where the coordinator listens' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -l token-file -d 'File with the join token; else the variable NCCLCTL_TOKEN is read' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -l name -d 'Name to show for this worker [default: the host name]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -l ranks -d 'Ranks to run here' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -l join-timeout -d 'How long to try to reach the coordinator' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand worker" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand show" -s o -l output -d 'Output format' -r -f -a "table\t'nccl-tests\' table, then the verdict as comment lines'
json\t'One JSON document with everything'
jsonl\t'Events as JSON, one a line, while they happen; the result last'
csv\t'One line a size'
junit\t'JUnit XML'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand show" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand show" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -s o -l output -d 'Output format' -r -f -a "text\t'The answer for a terminal'
json\t'One JSON document with everything'
md\t'Markdown, for an issue tracker'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -l against -d 'Say what is different in this second run' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -l model -d 'Print who talks to whom over what, instead of the answer'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -l unknown -d 'Print the lines of NCCL that this version does not know'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -l redact -d 'Replace host names, addresses, user names and secrets, each by the same stand-in everywhere'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand explain" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -l from -d 'What `plan -o facts` printed, or a captured tree, instead of this machine' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -l fleet -d 'Folder with one of these for each node of the job' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -l nccl -d 'Release to plan for [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -l goal -d 'What the job wants most [default: nothing beyond what is needed]' -r -f -a "throughput\t'Bytes per second'
latency\t'Short messages'
stability\t'No silent fall-back, early and clear errors'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -l explain -d 'Say why a variable has its value, or why it is not set' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -s o -l output -d 'Output format' -r -f -a "table\t'A page to read'
json\t'One JSON document, which --plan reads'
env\t'An env file'
facts\t'What is known of this machine, which --from and --fleet read'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand plan" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l from -d 'What `plan -o facts` printed, or a captured tree, instead of this machine' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l fleet -d 'Folder with one of these for each node of the job' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l nccl -d 'Release to plan for [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l goal -d 'What the job wants most [default: nothing beyond what is needed]' -r -f -a "throughput\t'Bytes per second'
latency\t'Short messages'
stability\t'No silent fall-back, early and clear errors'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l plan -d 'A plan that `plan -o json` printed' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l job -d 'nccl.conf with what the job has decided; this node adds only what is its own' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l dir -d 'Folder to write the files to' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l image -d 'Image that runs' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l base -d 'Base image of a Dockerfile' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l tool-image -d 'Image that holds ncclctl' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l name -d 'Name of the container or service' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -s n -l namespace -d 'Namespace in the cluster' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l rdma-resource -d 'Extended resource that gives RDMA devices [default: rdma/hca]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l rdma-network -d 'Network attachment of the RDMA CNI' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l mirror -d 'Mirrors of this site: apt=…,pip=…,registry=…' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l affinity -d 'How much pods want nodes with rdma=available' -r -f -a "required\t'Only there'
preferred\t'There first'
absent\t'No matter'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l topology -d 'Topology XML to put into the ConfigMap' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l check -d 'Write nothing; say whether the files in --dir are up to date'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l root -d 'Run as UID 0, where IPC_LOCK counts'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l init -d 'An init container plans for the node that a pod lands on'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l daemonset -d 'A DaemonSet keeps an nccl.conf on every node'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l override -d 'Only what is added to a Compose file that exists'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -l psk -d 'The job has a key for NCCL\'s TCP traffic (NCCL 2.32 and later), kept in a Secret'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand render" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l plan -d 'A plan of the job that `plan -o json` printed' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l agree-port -d 'Port of the agreement in the first process' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l agree-timeout -d 'How long to wait for the others' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l dry-run -d 'Say what would be set, and start nothing'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l strict -d 'Do not start the program where something is wrong: no look, no agreement, an error, a need that is not met'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -l agree -d 'Let the processes of the job agree over MASTER_ADDR on what they must share; all need the same NCCLCTL_TOKEN or NCCLCTL_TOKEN_FILE'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand exec" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -s o -l output -d 'Output format' -r -f -a "text\t'For people: the line, the span, why, what to write'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning services and editors'
github\t'Annotations of GitHub Actions'
junit\t'JUnit XML'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l nccl -d 'NCCL release that the job uses, where no file says it' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l driver -d 'GPU driver of the nodes, like 535' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l fail-on -d 'Lowest severity that makes the exit code 1' -r -f -a "info\t'Anything at all'
warning\t'What costs speed or safety'
error\t'What breaks the run'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l config -d 'Configuration, instead of the ncclctl.toml beside the files or above them' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l baseline -d 'Findings that are known: silent, and told when they are gone' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l write-baseline -d 'Write what is found now as the baseline, and end' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l explain -d 'Print the page of a rule, and end' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l pedantic -d 'Speak of what is only possible too'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l fix -d 'Write the safe edits into the files'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l unsafe -d 'With --fix or --diff: also edits that may change more than what was meant'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -l diff -d 'Show the edits and write nothing'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand lint" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -l from -d 'Read a capture, a file of facts, or pasted output of `ip addr`, `ibstat`, `nvidia-smi topo -m` and the like, instead of this machine' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -l save -d 'Also write everything that was read, as a tree, to this new folder' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -l diff -d 'Say what this container can not see of its host, and what that costs' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'
yaml\t'The same as YAML'
topo-xml\t'NCCL\'s topology file'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand facts" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -l nccl -d 'Release to judge settings by [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -f -a "container" -d 'The container that this runs in'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -f -a "docker" -d 'A container of a Docker engine, running or not, from outside'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and not __fish_seen_subcommand_from container docker image" -f -a "image" -d 'An image: looked into, never run'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -l nccl -d 'Release to judge settings by [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from container" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -l nccl -d 'Release to judge settings by [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from docker" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -l nccl -d 'Release to judge settings by [default: the one that is found, else the newest known]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand check; and __fish_seen_subcommand_from image" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l nccl -d 'Only what this release reads, with its defaults' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l pid -d 'Look at this process instead of the own environment' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l container -d 'Look at this container of a Docker engine (DOCKER_HOST, else this machine\'s)' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l image-env -d 'Environment of an image: NAME=VALUE lines, or what `docker image inspect` prints' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l env-file -d 'Env file of a container' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l conf -d 'File in NCCL\'s format; the first stands for /etc/nccl.conf, a second for the user\'s' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l removed -d 'Also what no release reads any more'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -l in-force -d 'Every setting in force, from which layer, and what NCCL makes of it'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and not __fish_seen_subcommand_from show" -a "show" -d 'Show all about one variable'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and __fish_seen_subcommand_from show" -l nccl -d 'Say what this release makes of it' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and __fish_seen_subcommand_from show" -s o -l output -d 'Output format' -r -f -a "table\t'For people'
json\t'One JSON document'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand vars; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l workers -d 'Workers, a container each' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l image -d 'Image of the workers; any with glibc, already on the engine' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l network -d 'bridge (an own one), host, macvlan=INTERFACE (an own one), or the name of a network that is there' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l gpus -d 'GPUs of each worker, consecutive ones' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l device -d 'Device, repeatable, like /dev/infiniband/uverbs0' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l shm-size -d 'Size of /dev/shm' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l memory -d 'Memory limit [default: none]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l user -d 'User and group, numbers' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l env -d 'Variable of the workers\' environment, repeatable' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l env-file -d 'Variables from a file, by Docker\'s rules' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l name -d 'Name of the run [default: ncclctl-PID]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l timeout -d 'How long the run may take' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -s o -l output -d 'Output format' -r -f -a "table\t'nccl-tests\' table, then the verdict as comment lines'
json\t'One JSON document with everything'
jsonl\t'Events as JSON, one a line, while they happen; the result last'
csv\t'One line a size'
junit\t'JUnit XML'"
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l save -d 'Write everything that was measured to a file, for `ncclctl show`' -r -F
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l docker -d 'In containers of a Docker engine'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l memlock -d 'Unlimited locked memory, which RDMA needs'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l detach -d 'Return at once; `status`, `logs` and `cleanup` go on'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -l keep -d 'Leave the containers when the run has ended'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand deploy" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand status" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand status" -l json -d 'One JSON document'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand status" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand status" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand status" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -l tail -d 'Only the last lines of each container' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -s f -l follow -d 'Go on until the run ends'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -l all -d 'The coordinator\'s standard output too: the result, as JSON'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand logs" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand cleanup" -l host -d 'Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine\'s]' -r
complete -c ncclctl -n "__fish_ncclctl_using_subcommand cleanup" -l all -d 'Every run on this engine'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand cleanup" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand cleanup" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand cleanup" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand rank" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand rank" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand rank" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand completions" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand completions" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand completions" -s V -l version -d 'Print version'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand man" -s q -l quiet -d 'Say less: nothing on standard error but what needs an action'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand man" -s h -l help -d 'Print help'
complete -c ncclctl -n "__fish_ncclctl_using_subcommand man" -s V -l version -d 'Print version'
