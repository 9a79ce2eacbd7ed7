//! The GPU while a trial runs, as NVML sees it: load, clocks, temperature, what holds it back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ncclctl_findings::evidence::{GpuRecord, GpuSample};

/// Time between two readings.
const EVERY: Duration = Duration::from_millis(200);
/// Most readings that are kept; then every second one is dropped and the pace halves.
const MOST: usize = 1200;

/// One GPU's meter.
pub(super) trait Meter: Send {
    /// Reads the GPU now.
    fn sample(&mut self) -> GpuSample;
    /// Uncorrected memory errors since the driver was loaded, where it counts them.
    fn uncorrected(&self) -> Option<u64>;
    /// Numbers of the Xid errors that the driver reported since the meter was made.
    fn xids(&mut self) -> Vec<u64>;
    /// PCI ids at the other end of active NVLinks; `*` for a switch, which reaches every GPU.
    fn nvlinked(&self) -> Vec<String>;
}

#[derive(Default)]
struct Kept {
    samples: Vec<GpuSample>,
    xids: Vec<u64>,
    uncorrected: Option<u64>,
    nvlinked: Vec<String>,
    missing: Option<String>,
    ready: bool,
}

/// Reads a GPU from a thread of its own until it is dropped.
pub(super) struct Sampler {
    kept: Arc<Mutex<Kept>>,
    stop: Arc<AtomicBool>,
}

impl Sampler {
    /// Starts; the meter is made in the thread, since NVML takes its time to begin.
    pub(super) fn start(
        make: impl FnOnce() -> Result<Box<dyn Meter>, String> + Send + 'static,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, ended) = (Arc::clone(&kept), Arc::clone(&stop));
        std::thread::spawn(move || {
            let lock = || into.lock().unwrap_or_else(PoisonError::into_inner);
            let mut meter = match make() {
                Ok(meter) => meter,
                Err(why) => {
                    let mut kept = lock();
                    kept.missing = Some(why);
                    kept.ready = true;
                    return;
                }
            };
            {
                let linked = meter.nvlinked();
                let mut kept = lock();
                kept.nvlinked = linked;
                kept.ready = true;
            }
            let began = Instant::now();
            let before = meter.uncorrected();
            let mut every = EVERY;
            while !ended.load(Ordering::Relaxed) {
                let mut sample = meter.sample();
                sample.at_s = began.elapsed().as_secs_f64();
                let xids = meter.xids();
                let now = meter.uncorrected();
                let mut kept = lock();
                kept.samples.push(sample);
                kept.xids.extend(xids);
                kept.uncorrected = now.zip(before).map(|(now, before)| now.saturating_sub(before));
                if kept.samples.len() >= MOST {
                    let mut index = 0;
                    kept.samples.retain(|_| {
                        index += 1;
                        index % 2 == 0
                    });
                    every *= 2;
                }
                drop(kept);
                std::thread::sleep(every);
            }
        });
        Self { kept, stop }
    }

    /// PCI ids behind NVLinks; waits a moment for NVML to begin.
    pub(super) fn nvlinked(&self) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(2);
        loop {
            {
                let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.ready {
                    return kept.nvlinked.clone();
                }
            }
            if Instant::now() >= until {
                return Vec::new();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What was seen so far.
    pub(super) fn record(&self) -> GpuRecord {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        GpuRecord {
            samples: kept.samples.clone(),
            xids: kept.xids.clone(),
            uncorrected_errors: kept.uncorrected,
            missing: kept.missing.clone(),
            ..GpuRecord::default()
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steady(u32);

    impl Meter for Steady {
        fn sample(&mut self) -> GpuSample {
            self.0 += 1;
            GpuSample { sm_clock_mhz: Some(1980), ..GpuSample::default() }
        }
        fn uncorrected(&self) -> Option<u64> {
            Some(u64::from(self.0) + 40)
        }
        fn xids(&mut self) -> Vec<u64> {
            if self.0 == 1 { vec![79] } else { Vec::new() }
        }
        fn nvlinked(&self) -> Vec<String> {
            vec!["*".to_owned()]
        }
    }

    #[test]
    fn errors_count_from_the_start_and_samples_are_kept() {
        let sampler = Sampler::start(|| Ok(Box::new(Steady(0))));
        assert_eq!(sampler.nvlinked(), ["*"]);
        let until = Instant::now() + Duration::from_secs(5);
        while sampler.record().samples.len() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let record = sampler.record();
        assert!(record.samples.len() >= 2);
        assert_eq!(record.xids, [79]);
        assert_eq!(record.uncorrected_errors, Some(record.samples.len() as u64));
    }

    #[test]
    fn without_nvml_the_reason_is_kept() {
        let sampler = Sampler::start(|| Err("no libnvidia-ml.so.1".to_owned()));
        assert!(sampler.nvlinked().is_empty());
        assert_eq!(sampler.record().missing.as_deref(), Some("no libnvidia-ml.so.1"));
    }
}
