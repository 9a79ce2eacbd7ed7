//! Values: empty, read otherwise than written, out of range.

use super::{Doubt, Setting, Weight, Write};
use crate::params::{self, Kind, PATH_LEVELS, Reading, Trap};

/// Set to nothing: `env-empty-value`.
pub fn empty(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !s.value.is_empty() || params::get(s.name).is_none() || !s.name.starts_with("NCCL_") {
        return;
    }
    found.push(
        s.doubt(
            "env-empty-value",
            Weight::Warning,
            format!("{} is set to nothing", s.name),
            "empty is not unset: it hides the value of nccl.conf, and where a number is read it has \
             acted as 0",
            "take the line out, or give it a default: ${NAME:-value}",
        )
        .writing(Write::Remove { safe: false }),
    );
}

/// Words for on and off that people write for a switch.
fn switch(text: &str) -> Option<&'static str> {
    const ON: [&str; 6] = ["true", "yes", "on", "enable", "enabled", "y"];
    const OFF: [&str; 6] = ["false", "no", "off", "disable", "disabled", "n"];
    let text = text.trim().trim_matches(['"', '\'']);
    if ON.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        Some("1")
    } else if OFF.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        Some("0")
    } else {
        None
    }
}

/// `8M`, `4MiB`, `64k` as a number of bytes.
fn bytes(text: &str) -> Option<i64> {
    let text = text.trim().trim_matches(['"', '\'']);
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let number: i64 = text.get(..end)?.parse().ok()?;
    let factor = match text.get(end..)?.trim().to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// What was plainly meant by a value that NCCL reads otherwise.
fn meant(s: Setting<'_>, kind: Kind, trap: &Trap) -> Option<String> {
    let bare = s.value.trim().trim_matches(['"', '\'']);
    match trap {
        Trap::NotANumber if kind == Kind::Bool || switch(bare).is_some() => {
            if let Some(number) = switch(bare) {
                return Some(number.to_owned());
            }
            whole(bare)
        }
        Trap::NotANumber => whole(bare),
        Trap::Trailing(_) => bytes(bare).map(|n| n.to_string()).or_else(|| {
            // a comment behind the number
            let first = bare.split([' ', '#', ';']).next()?;
            (first.len() < bare.len()).then(|| whole(first))?
        }),
        Trap::Octal => {
            let stripped = bare.trim_start_matches('0');
            Some(if stripped.is_empty() { "0" } else { stripped }.to_owned())
        }
        Trap::UnknownWord => {
            let upper = bare.to_ascii_uppercase();
            let known = PATH_LEVELS.contains(&upper.as_str())
                || matches!(upper.as_str(), "AF_INET" | "AF_INET6");
            match upper.as_str() {
                // names that nvidia-smi uses
                "NODE" => Some("PHB".to_owned()),
                "IPV4" | "INET" => Some("AF_INET".to_owned()),
                "IPV6" | "INET6" => Some("AF_INET6".to_owned()),
                _ if known => Some(upper),
                _ => switch(bare).map(str::to_owned),
            }
        }
        Trap::Blank => Some(s.value.replace([' ', '\t'], "")),
        Trap::Quoted => Some(bare.to_owned()),
        Trap::CarriageReturn => Some(s.value.trim_end_matches('\r').to_owned()),
        Trap::LoggingOff => {
            let upper = bare.to_ascii_uppercase();
            match upper.as_str() {
                "WARNING" => Some("WARN".to_owned()),
                "ERROR" | "ATTN" | "1" | "TRUE" => Some("WARN".to_owned()),
                "DEBUG" | "2" => Some("INFO".to_owned()),
                _ if ["VERSION", "WARN", "INFO", "TRACE"].contains(&upper.as_str()) => Some(upper),
                _ => None,
            }
        }
        Trap::Wildcard | Trap::OutOfRange | Trap::Empty | Trap::OneCharacter => None,
    }
}

fn whole(text: &str) -> Option<String> {
    (params::read_integer(text).reading == Reading::Whole).then(|| text.to_owned())
}

/// Read otherwise than written: `env-value-misread`.
pub fn misread(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(param) = params::get(s.name) else { return };
    if s.value.is_empty() || !param.read_in(s.version) || s.open() {
        return;
    }
    if s.name == "NCCL_DEBUG" && s.value.eq_ignore_ascii_case("ATTN") && !s.version_known {
        found.push(s.doubt(
            "env-value-misread",
            Weight::Info,
            "NCCL_DEBUG=ATTN switches logging off before NCCL 2.32",
            "ATTN is a level from 2.32 on; before, it is an unknown name, which is no logging at all",
            "write NCCL_DEBUG=WARN with NCCL_DEBUG_LEVELS=ATTN, which every release takes",
        ));
        return;
    }
    let taken = param.taken(s.value, s.version);
    let Some(trap) = taken.trap else { return };
    // a list of interfaces without a match is a matter of its own
    if trap == Trap::Wildcard || trap == Trap::Blank || trap == Trap::Empty {
        return;
    }
    // asking for no log in other words
    if trap == Trap::LoggingOff
        && ["", "NONE", "OFF", "0"].contains(&s.value.to_ascii_uppercase().as_str())
    {
        return;
    }
    let becomes = taken.value.unwrap_or_else(|| "its default".to_owned());
    let write = meant(s, param.kind, &trap);
    // text for off, read as 0: what was meant happens
    let same = write.as_deref() == Some(becomes.as_str());
    let opposite = !same && matches!(trap, Trap::NotANumber | Trap::Quoted);
    let remedy = match (&write, &trap) {
        (Some(value), _) => format!("write {}={value}", s.name),
        (None, Trap::NotANumber | Trap::UnknownWord | Trap::LoggingOff) => {
            format!("write one of: {}", param.accepted)
        }
        (None, Trap::OneCharacter) => "write the whole name".to_owned(),
        _ => "write the whole number".to_owned(),
    };
    let doubt = s.doubt(
        "env-value-misread",
        match (same, opposite) {
            (true, _) => Weight::Info,
            (_, true) => Weight::Error,
            _ => Weight::Warning,
        },
        format!("{} is read as {becomes}", s.shown()),
        format!("{trap}, without a message"),
        remedy,
    );
    // a switch that begins to work may take a transport away from a job that runs well
    let safe = same || !s.name.ends_with("_DISABLE") && trap != Trap::LoggingOff;
    found.push(match write {
        Some(value) => doubt.writing(Write::Value { value, safe }),
        None => doubt,
    });
}

/// Numbers with a range, least and most, others that stand for automatic, and a unit of which it
/// must be a multiple. Source: NCCL 2.30.7, where each is read; IB limits from the InfiniBand
/// specification's field widths.
const RANGES: [(&str, i64, i64, &[i64], i64); 33] = [
    ("NCCL_IB_RETRY_CNT", 0, 7, &[], 1),
    ("NCCL_IB_SL", 0, 15, &[-1], 1),
    ("NCCL_IB_TC", 0, 255, &[-1], 1),
    ("NCCL_IB_FIFO_TC", 0, 255, &[-1], 1),
    ("NCCL_GIN_IB_TC", 0, 255, &[-1], 1),
    ("NCCL_IB_GID_INDEX", 0, 255, &[-1], 1),
    ("NCCL_IB_QPS_PER_CONNECTION", 1, 128, &[], 1),
    ("NCCL_IB_ROCE_VERSION_NUM", 1, 2, &[], 1),
    ("NCCL_IB_SUBNET_PREFIX_LEN", 1, 32, &[], 1),
    ("NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, &[], 1),
    ("NCCL_NTHREADS", 64, 512, &[-2], 32),
    ("NCCL_LL128_NTHREADS", 160, 640, &[-2], 32),
    ("NCCL_CGA_CLUSTER_SIZE", 0, 8, &[-2], 1),
    ("NCCL_MAX_CTAS", 1, 64, &[], 1),
    ("NCCL_MIN_CTAS", 1, 64, &[], 1),
    ("NCCL_MAX_NCHANNELS", 1, 64, &[-2], 1),
    ("NCCL_MIN_NCHANNELS", 1, 64, &[-2], 1),
    ("NCCL_MAX_P2P_NCHANNELS", 1, 64, &[], 1),
    ("NCCL_MIN_P2P_NCHANNELS", 1, 64, &[], 1),
    ("NCCL_SOCKET_NTHREADS", 0, 16, &[-2], 1),
    ("NCCL_NSOCKS_PERTHREAD", 1, 64, &[-2], 1),
    ("NCCL_CROSS_NIC", 0, 2, &[], 1),
    ("NCCL_NVLS_ENABLE", 0, 2, &[], 1),
    ("NCCL_MNNVL_ENABLE", 0, 2, &[], 1),
    ("NCCL_PAT_ENABLE", 0, 2, &[], 1),
    ("NCCL_P2P_PXN_LEVEL", 0, 2, &[], 1),
    ("NCCL_SHM_LOCALITY", 1, 2, &[], 1),
    ("NCCL_CUMEM_ENABLE", 0, 1, &[-2], 1),
    ("NCCL_CUMEM_HOST_ENABLE", 0, 1, &[-1], 1),
    ("NCCL_NET_GDR_READ", 0, 1, &[-2], 1),
    ("NCCL_RAS_TIMEOUT_FACTOR", 1, i64::MAX, &[], 1),
    // less than one step of the pipeline: 8 steps of at least 4 KiB
    ("NCCL_BUFFSIZE", 32768, i64::MAX, &[-2], 1),
    ("NCCL_NCHANNELS_PER_NET_PEER", 1, 64, &[-2, -1], 1),
];

/// A number outside its range: `env-value-out-of-range`.
pub fn out_of_range(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some((_, least, most, others, step)) = RANGES.iter().find(|r| r.0 == s.name) else {
        return;
    };
    let read = params::read_integer(s.value);
    let (Some(number), Reading::Whole) = (read.value, read.reading) else { return };
    let known = params::get(s.name).is_some_and(|p| p.is_integer_in(s.version));
    if !known || others.contains(&number) {
        return;
    }
    let range = match *most {
        i64::MAX => format!("{least} or more"),
        most => format!("{least} to {most}"),
    };
    let (what, remedy) = if number < *least || number > *most {
        (format!("{} is outside of {range}", s.shown()), format!("write a number of {range}"))
    } else if number % step != 0 {
        let near = (number / step * step).max(*least);
        (format!("{} is no multiple of {step}", s.shown()), format!("write {}={near}", s.name))
    } else {
        return;
    };
    found.push(s.doubt(
        "env-value-out-of-range",
        Weight::Warning,
        what,
        "NCCL cuts such a value to its limits or takes its default, at most with a line at INFO \
         level; where the hardware gets it, the connection fails",
        remedy,
    ));
}

#[cfg(test)]
mod tests {
    use super::super::{Write, doubts_of};

    fn written(name: &str, value: &str) -> String {
        let doubts = doubts_of(&[(name, value)], None);
        let Some(d) = doubts.iter().find(|d| d.rule.starts_with("env-value")) else {
            return String::new();
        };
        match &d.write {
            Some(Write::Value { value, safe }) => format!("{:?} {value} {safe}", d.weight),
            other => format!("{:?} {other:?}", d.weight),
        }
    }

    #[test]
    fn what_was_meant() {
        for (name, value, want) in [
            ("NCCL_IB_DISABLE", "true", "Error 1 false"),
            ("NCCL_IB_DISABLE", "False", "Info 0 true"),
            ("NCCL_BUFFSIZE", "8M", "Warning 8388608 true"),
            ("NCCL_BUFFSIZE", "4MiB", "Warning 4194304 true"),
            ("NCCL_IB_TIMEOUT", "22 # slow fabric", "Info 22 true"),
            ("NCCL_IB_TIMEOUT", "022", "Warning 22 true"),
            ("NCCL_IB_TIMEOUT", "\"22\"", "Error 22 true"),
            ("NCCL_P2P_LEVEL", "nvl", "Warning NVL true"),
            ("NCCL_NET_GDR_LEVEL", "node", "Warning PHB true"),
            ("NCCL_DEBUG", "WARNING", "Warning WARN false"),
            ("NCCL_SOCKET_FAMILY", "ipv4", "Warning AF_INET true"),
            ("NCCL_IB_SL", "16", "Warning None"),
            ("NCCL_NTHREADS", "100", "Warning None"),
            ("NCCL_IB_SL", "5", ""),
            ("NCCL_DEBUG", "none", ""),
            ("NCCL_IB_DISABLE", "${IB_OFF}", ""),
            ("NCCL_IB_GID_INDEX", "-1", ""),
        ] {
            assert_eq!(written(name, value), want, "{name}={value}");
        }
    }
}
