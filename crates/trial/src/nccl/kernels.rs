//! The device code that fills buffers and counts wrong elements: plain PTX text that the driver
//! compiles when it is loaded, so that neither a compiler nor the CUDA runtime is needed.

/// ISA of the text; drivers from 418 on accept it.
const VERSION: &str = "6.3";
/// Oldest architecture that it runs on; every later one too.
const TARGET: &str = "sm_70";
/// Body of each kernel, with placeholders.
const TEMPLATE: &str = include_str!("kernels.ptx");
/// SplitMix64's mixing function and the remainder by 256, on `%d8`, with `%d9` as scratch.
/// The constants are those of `tcp::check::mix` (Steele, Lea, Flood 2014).
const MIX: &str = "\
add.s64 %d8, %d8, 0x9e3779b97f4a7c15;
    shr.u64 %d9, %d8, 30;
    xor.b64 %d8, %d8, %d9;
    mul.lo.s64 %d8, %d8, 0xbf58476d1ce4e5b9;
    shr.u64 %d9, %d8, 27;
    xor.b64 %d8, %d8, %d9;
    mul.lo.s64 %d8, %d8, 0x94d049bb133111eb;
    shr.u64 %d9, %d8, 31;
    xor.b64 %d8, %d8, %d9;
    and.b64 %d8, %d8, 255;";

/// Element widths in bytes for which there are kernels.
pub(super) const WIDTHS: [usize; 4] = [1, 2, 4, 8];
/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// The whole module: `fill_1` … `fill_8`, `wrong_1` … `wrong_8`.
pub(super) fn module() -> String {
    let mut text = format!(".version {VERSION}\n.target {TARGET}\n.address_size 64\n");
    for width in WIDTHS {
        let bits = width * 8;
        text.push_str(
            &TEMPLATE
                .replace("MIX", MIX)
                .replace("WIDTH", &width.to_string())
                .replace("BITS", &bits.to_string())
                .replace("SIGN", &(bits - 1).to_string())
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .flat_map(|line| [line, "\n"])
                .collect::<String>(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(text: &str, name: &str) -> String {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    }

    #[test]
    fn old_drivers_and_gpus_can_load_it() {
        let text = module();
        let version: f64 = directive(&text, ".version").parse().unwrap();
        assert!(version <= 7.4, "driver 470 reads ISA 7.4 at most");
        let target: u32 = directive(&text, ".target sm_").parse().unwrap();
        assert!(target <= 70, "Volta must be able to load it");
        assert!(text.is_ascii() && !text.contains('\0'));
    }

    #[test]
    fn every_width_has_both_kernels_and_no_placeholder_is_left() {
        let text = module();
        for width in WIDTHS {
            assert!(text.contains(&format!(".entry fill_{width}(")));
            assert!(text.contains(&format!(".entry wrong_{width}(")));
        }
        for left in ["WIDTH", "BITS", "MIX", "SIGN"] {
            assert!(!text.contains(left), "{left}");
        }
    }
}
