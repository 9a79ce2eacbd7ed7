//! Mirrors of registries and packages, and the list of images to copy.

/// Where a site gets its images and packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors {
    /// Registry that holds copies of all images.
    pub registry: Option<String>,
    /// Base address of apt (or dnf) packages.
    pub apt: Option<String>,
    /// Index of pip.
    pub pip: Option<String>,
}

/// A mirror that can not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorsError {
    /// No `=`.
    #[error("`{0}`: write kind=address, like registry=mirror.example:5000")]
    NoEquals(String),
    /// Unknown kind.
    #[error("`{0}` is no kind of mirror; known are apt, pip and registry")]
    Kind(String),
    /// A name and password in the address.
    #[error("`{0}` holds a password: give it by a secret mount, not in a file")]
    Secret(String),
    /// An address that would break the line it is written to.
    #[error("`{0}` holds a blank or a quote")]
    Text(String),
}

impl Mirrors {
    /// Reads `apt=…,pip=…,registry=…`.
    pub fn parse(text: &str) -> Result<Self, MirrorsError> {
        let mut out = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (kind, address) =
                part.split_once('=').ok_or_else(|| MirrorsError::NoEquals(part.to_owned()))?;
            if address.contains('@') {
                return Err(MirrorsError::Secret(kind.to_owned()));
            }
            if address.is_empty()
                || address.contains([' ', '"', '\'', '\\', '$', '#', ';', '&', '\n'])
            {
                return Err(MirrorsError::Text(part.to_owned()));
            }
            let value = Some(address.trim_end_matches('/').to_owned());
            match kind {
                "apt" => out.apt = value,
                "pip" => out.pip = value,
                "registry" => out.registry = value,
                _ => return Err(MirrorsError::Kind(kind.to_owned())),
            }
        }
        Ok(out)
    }

    /// An image as this site names it: the registry's name is replaced, the path stays.
    pub fn image(&self, image: &str) -> String {
        let Some(registry) = &self.registry else { return image.to_owned() };
        let path = match image.split_once('/') {
            Some((first, rest)) if is_registry(first) => rest,
            Some(_) => image,
            None => return format!("{registry}/library/{image}"),
        };
        format!("{registry}/{path}")
    }

    /// The command that copies an image to the mirror; nothing without a mirror.
    pub fn copy(&self, image: &str) -> Option<String> {
        self.registry.as_ref()?;
        let full = full(image);
        Some(format!("skopeo copy --all docker://{full} docker://{}", self.image(image)))
    }
}

fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

/// An image with its registry.
fn full(image: &str) -> String {
    match image.split_once('/') {
        Some((first, _)) if is_registry(first) => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None => format!("docker.io/library/{image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_move_to_the_mirror() {
        let mirrors = Mirrors::parse("registry=mirror.site:5000,apt=http://deb.site/").unwrap();
        for (image, want) in [
            ("ubuntu:24.04", "mirror.site:5000/library/ubuntu:24.04"),
            ("nvidia/cuda:12", "mirror.site:5000/nvidia/cuda:12"),
            ("nvcr.io/nvidia/pytorch:25.01-py3", "mirror.site:5000/nvidia/pytorch:25.01-py3"),
        ] {
            assert_eq!(mirrors.image(image), want);
            assert_eq!(Mirrors::default().image(image), image);
        }
        assert_eq!(
            mirrors.copy("ubuntu:24.04").as_deref(),
            Some(
                "skopeo copy --all docker://docker.io/library/ubuntu:24.04 \
                 docker://mirror.site:5000/library/ubuntu:24.04"
            )
        );
        assert!(Mirrors::default().copy("ubuntu").is_none());
        assert_eq!(mirrors.apt.as_deref(), Some("http://deb.site"));
    }

    #[test]
    fn what_can_not_be_used_is_refused() {
        for bad in ["x", "npm=a", "pip=https://u:p@h/simple", "apt=a b", "apt="] {
            assert!(Mirrors::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Mirrors::parse(""), Ok(Mirrors::default()));
    }
}
