//! Finding and loading `libnccl.so.2` and `libcuda.so.1`. Nothing is opened before this is called,
//! and every place that was tried is told with what was seen there.
#![allow(unsafe_code, reason = "loads foreign libraries")]

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::fmt;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use ncclctl_facts::Root;
use ncclctl_nccl::Version;

use super::ffi::{Driver, Nccl};

/// `RTLD_NOLOAD` of glibc and musl on Linux: only what is loaded already.
const RTLD_NOLOAD: c_int = 4;
/// Oldest version that is driven: the first with averages and bfloat16.
const OLDEST: Version = Version::new(2, 10, 0);

/// Why a place was looked at, in the order in which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `--nccl PATH`.
    Flag,
    /// `NCCLCTL_NCCL`.
    Environment,
    /// `NCCLCTL_CUDA`, for the driver's library.
    DriverEnvironment,
    /// Loaded into this process already (`LD_PRELOAD`).
    Loaded,
    /// The loader's own search: `LD_LIBRARY_PATH`, `/etc/ld.so.cache`, the system folders.
    System,
    /// A Python environment's `nvidia/nccl/lib`.
    Wheel,
    /// A CUDA or NCCL folder.
    Cuda,
}

/// A place where the library may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) origin: Origin,
    pub(super) path: String,
}

/// A place that was tried and why it was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) candidate: Candidate,
    pub(super) why: String,
}

/// No usable library: every place and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) struct NotFound {
    pub(super) library: &'static str,
    pub(super) refused: Vec<Refused>,
    pub(super) remedy: &'static str,
}

/// NCCL, loaded.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) functions: Nccl,
    pub(super) version: Version,
    /// Path of the file where it can be told, else the name it was opened by.
    pub(super) path: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "--nccl",
            Self::Environment => "NCCLCTL_NCCL",
            Self::DriverEnvironment => "NCCLCTL_CUDA",
            Self::Loaded => "already loaded",
            Self::System => "loader search",
            Self::Wheel => "python package",
            Self::Cuda => "CUDA folder",
        })
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no usable {}", self.library)?;
        for refused in &self.refused {
            let Candidate { origin, path } = &refused.candidate;
            write!(f, "\n  {origin}: {path}: {}", refused.why)?;
        }
        write!(f, "\n  {}", self.remedy)
    }
}

/// Every place for NCCL, in order. With a path by flag or environment that one alone: whoever names a
/// library wants no other.
pub(super) fn candidates(flag: Option<&str>, root: &Root) -> Vec<Candidate> {
    let one = |origin, path: &str| vec![Candidate { origin, path: path.to_owned() }];
    if let Some(path) = flag {
        return one(Origin::Flag, path);
    }
    if let Some(path) = root.variable("NCCLCTL_NCCL").filter(|path| !path.is_empty()) {
        return one(Origin::Environment, path);
    }
    let mut all = one(Origin::Loaded, "libnccl.so.2");
    all.extend(one(Origin::System, "libnccl.so.2"));
    for folder in site_packages(root) {
        all.extend(one(Origin::Wheel, &format!("{folder}/nvidia/nccl/lib/libnccl.so.2")));
    }
    for folder in cuda_folders(root) {
        all.extend(one(Origin::Cuda, &format!("{folder}/libnccl.so.2")));
    }
    all
}

/// Folders in which Python packages lie: those of every Python on PATH, of the environment in force,
/// and of the usual places of images.
fn site_packages(root: &Root) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(root.variable(name).map(str::to_owned));
    }
    for folder in root.variable("PATH").unwrap_or_default().split(':') {
        prefixes.extend(folder.strip_suffix("/bin").map(str::to_owned));
    }
    prefixes.extend(["/usr/local", "/usr", "/opt/conda", "/opt/venv"].map(str::to_owned));
    prefixes.extend(root.variable("HOME").map(|home| format!("{home}/.local")));
    for name in root.list("/opt") {
        prefixes.push(format!("/opt/{name}"));
        prefixes.push(format!("/opt/{name}/.venv"));
        prefixes.push(format!("/opt/{name}/venv"));
    }
    let mut folders: Vec<String> = Vec::new();
    for folder in root.variable("PYTHONPATH").unwrap_or_default().split(':') {
        if folder.starts_with('/') {
            folders.push(folder.trim_end_matches('/').to_owned());
        }
    }
    for prefix in prefixes {
        for lib in ["lib", "lib64"] {
            for python in root.list(&format!("{prefix}/{lib}")) {
                if python.starts_with("python3") {
                    for packages in ["site-packages", "dist-packages"] {
                        folders.push(format!("{prefix}/{lib}/{python}/{packages}"));
                    }
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    folders
        .into_iter()
        .filter(|folder| seen.insert(folder.clone()))
        .filter(|folder| !root.list(&format!("{folder}/nvidia/nccl/lib")).is_empty())
        .collect()
}

fn cuda_folders(root: &Root) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for name in ["NCCL_HOME", "CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = root.variable(name) {
            folders.extend([format!("{home}/lib"), format!("{home}/lib64")]);
        }
    }
    folders.push("/usr/local/cuda/lib64".to_owned());
    folders.extend(
        root.list("/usr/local")
            .into_iter()
            .filter(|name| name.starts_with("cuda-") || name.starts_with("nccl"))
            .flat_map(|name| {
                [format!("/usr/local/{name}/lib64"), format!("/usr/local/{name}/lib")]
            }),
    );
    folders.extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/nccl/lib"].map(str::to_owned));
    folders.retain(|folder| root.list(folder).iter().any(|name| name == "libnccl.so.2"));
    folders
}

/// Opens the first usable NCCL.
pub(super) fn nccl(flag: Option<&str>, root: &Root) -> Result<Loaded, NotFound> {
    let mut refused = Vec::new();
    for candidate in candidates(flag, root) {
        match open_nccl(&candidate) {
            Ok(loaded) => return Ok(loaded),
            Err(why) => refused.push(Refused { candidate, why }),
        }
    }
    Err(NotFound {
        library: "libnccl.so.2",
        refused,
        remedy: "install it (`pip install nvidia-nccl-cu12` or `-cu13` to suit the driver, or the \
                 package libnccl2), or name the file with --nccl or NCCLCTL_NCCL",
    })
}

fn open_nccl(candidate: &Candidate) -> Result<Loaded, String> {
    let mut flags = RTLD_NOW | RTLD_LOCAL;
    if candidate.origin == Origin::Loaded {
        flags |= RTLD_NOLOAD;
    }
    let library = open(&candidate.path, flags).map_err(|error| match candidate.origin {
        Origin::Loaded => "not loaded".to_owned(),
        _ => error,
    })?;
    // SAFETY: the names are NCCL's, whose signatures have not changed since 2.3; the library stays
    // loaded for ever, since its threads and exit handlers may be live
    let functions = unsafe { Nccl::load(&library) };
    std::mem::forget(library);
    let functions = functions.map_err(|name| format!("is no NCCL: it has no {name}"))?;
    let mut code: c_int = 0;
    // SAFETY: writes one int
    let result = unsafe { (functions.get_version)(&raw mut code) };
    if result != 0 || code <= 0 {
        return Err(format!("ncclGetVersion failed with {result}"));
    }
    let version = Version::from_code(code as u32);
    if version < OLDEST {
        return Err(format!("version {version} is older than {OLDEST}"));
    }
    let path = file_of(&functions).unwrap_or_else(|| candidate.path.clone());
    Ok(Loaded { functions, version, path })
}

/// Opens the driver's library: `NCCLCTL_CUDA`, else by its name.
pub(super) fn driver(root: &Root) -> Result<Driver, NotFound> {
    let candidate = match root.variable("NCCLCTL_CUDA").filter(|path| !path.is_empty()) {
        Some(path) => Candidate { origin: Origin::DriverEnvironment, path: path.to_owned() },
        None => Candidate { origin: Origin::System, path: "libcuda.so.1".to_owned() },
    };
    let fail = |why| NotFound {
        library: "libcuda.so.1",
        refused: vec![Refused { candidate: candidate.clone(), why }],
        remedy: "it belongs to the GPU driver of the host: run on a GPU host, and in a container \
                 with the NVIDIA runtime (`docker run --gpus all`, or a nvidia.com/gpu limit)",
    };
    let library = open(&candidate.path, RTLD_NOW | RTLD_LOCAL).map_err(fail)?;
    // SAFETY: the names are those of cuda.h, each with the suffix of the signature meant; the library
    // stays loaded for ever
    let functions = unsafe { Driver::load(&library) };
    std::mem::forget(library);
    functions.map_err(|name| fail(format!("has no {name}")))
}

fn open(path: &str, flags: c_int) -> Result<Library, String> {
    // SAFETY: runs the initialisers of a library that the user named or installed; both libraries are
    // made to be opened at run time
    unsafe { Library::open(Some(path), flags) }.map_err(|error| {
        let text = error.to_string();
        text.strip_prefix(&format!("{path}: ")).unwrap_or(&text).to_owned()
    })
}

/// The file that the functions came from.
fn file_of(functions: &Nccl) -> Option<String> {
    let address = functions.get_version as *const std::ffi::c_void;
    // SAFETY: all zero is a valid value of this struct of pointers
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about; the struct is written when the result is not 0
    let found = unsafe { libc::dladdr(address, &raw mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the loader's own terminated string, alive while the library is
    found
        .then(|| unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tree(files: &[&str], environment: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let environment: BTreeMap<String, String> =
            environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let root = Root::captured(folder.path(), environment);
        (folder, root)
    }

    fn shown(flag: Option<&str>, root: &Root) -> Vec<String> {
        candidates(flag, root).iter().map(|c| format!("{}: {}", c.origin, c.path)).collect()
    }

    #[test]
    fn places_in_order() {
        let (_folder, root) = tree(
            &[
                "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2",
                "/usr/lib/python3/dist-packages/numpy/core.so",
                "/usr/local/cuda-12.4/lib64/libnccl.so.2",
                "/usr/lib/x86_64-linux-gnu/libnccl.so.2",
            ],
            &[("PATH", "/opt/torch/.venv/bin:/usr/bin")],
        );
        insta::assert_snapshot!(shown(None, &root).join("\n"), @r"
        already loaded: libnccl.so.2
        loader search: libnccl.so.2
        python package: /opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2
        CUDA folder: /usr/local/cuda-12.4/lib64/libnccl.so.2
        CUDA folder: /usr/lib/x86_64-linux-gnu/libnccl.so.2
        ");
    }

    #[test]
    fn a_named_library_is_the_only_one() {
        let (_folder, root) = tree(&[], &[("NCCLCTL_NCCL", "/a/libnccl.so.2")]);
        assert_eq!(shown(None, &root), ["NCCLCTL_NCCL: /a/libnccl.so.2"]);
        assert_eq!(shown(Some("/b.so"), &root), ["--nccl: /b.so"]);
    }

    #[test]
    fn not_found_tells_every_place_and_what_to_install() {
        let (_folder, root) = tree(&[], &[]);
        let error = nccl(Some("/nowhere/libnccl.so.2"), &root).err().unwrap();
        insta::assert_snapshot!(error, @r"
        no usable libnccl.so.2
          --nccl: /nowhere/libnccl.so.2: cannot open shared object file: No such file or directory
          install it (`pip install nvidia-nccl-cu12` or `-cu13` to suit the driver, or the package libnccl2), or name the file with --nccl or NCCLCTL_NCCL
        ");
    }

    #[test]
    fn another_library_is_refused() {
        let (_folder, root) = tree(&[], &[]);
        let error = nccl(Some("libm.so.6"), &root).err().unwrap();
        assert!(error.to_string().contains("is no NCCL: it has no ncclGetVersion"), "{error}");
    }
}
