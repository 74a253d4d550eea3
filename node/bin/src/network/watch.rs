//! Shows the progress of a state copy: lines in the log, and pages at the node's RPC address.

use almanac_bft::sync::{Phase, Progress, Stage};
use almanac_rpc::server::Page;
use commonware_runtime::Clock;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Time between two lines about the same phase.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of a copy that writes a line whenever a phase begins.
pub(super) fn progress() -> Progress {
    Progress::told_to(|stage| tracing::info!("{}", describe(stage)))
}

/// Writes a line every few seconds while a phase lasts. Never ends.
pub(super) async fn log(clock: impl Clock, progress: Arc<Progress>) {
    let mut last = (progress.now(), clock.current());
    loop {
        clock.sleep(LINE_EVERY).await;
        let now = (progress.now(), clock.current());
        if now.0.phase == last.0.phase {
            let elapsed = now.1.duration_since(last.1).unwrap_or_default();
            tracing::info!("{}{}", describe(&now.0), speed(&last.0, &now.0, elapsed));
        }
        last = now;
    }
}

/// The phase, and how much of it is done.
fn describe(stage: &Stage) -> String {
    let place = Phase::ALL.iter().position(|phase| *phase == stage.phase).map_or(0, |place| place + 1);
    let name = stage.phase.name();
    let head = format!("copying, step {place} of {}: {name}", Phase::ALL.len());
    let Some(unit) = stage.phase.unit() else { return head };
    let percent = percent(stage);
    format!("{head}, {} of {} {unit} ({percent} %), {}", stage.done, stage.total, megabytes(stage.bytes))
}

/// How fast it went since the last line, and how long the rest takes at that speed.
fn speed(before: &Stage, now: &Stage, elapsed: Duration) -> String {
    let (Some(unit), seconds) = (now.phase.unit(), elapsed.as_secs_f64()) else { return String::new() };
    let rate = now.done.saturating_sub(before.done) as f64 / seconds;
    let bytes = now.bytes.saturating_sub(before.bytes) as f64 / seconds;
    let left = match (now.total.saturating_sub(now.done)) as f64 / rate {
        left if left.is_finite() => format!("about {left:.0} s left"),
        _ => "nothing came meanwhile".to_owned(),
    };
    format!(", {rate:.0} {unit} and {} a second, {left}", megabytes(bytes as u64))
}

fn percent(stage: &Stage) -> u64 {
    let percent = u128::from(stage.done) * 100 / u128::from(stage.total.max(1));
    u64::try_from(percent).unwrap_or(100)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The pages of a node that copies: the same paths as later.
pub(super) fn pages(progress: &Arc<Progress>) -> Vec<(&'static str, Page)> {
    let (health, metrics) = (progress.clone(), progress.clone());
    vec![
        ("/health", Arc::new(move || render_health(&health.now()))),
        ("/metrics", Arc::new(move || render_metrics(&metrics.now()))),
    ]
}

fn render_health(stage: &Stage) -> String {
    let Stage { phase, done, total, bytes } = stage;
    let (phase, percent) = (phase.name(), percent(stage));
    let health = json!({
        "status": "copying", "phase": phase, "done": done, "total": total, "percent": percent, "bytes": bytes
    });
    format!("{health}\n")
}

fn render_metrics(stage: &Stage) -> String {
    let mut page = "# HELP almanac_copy_phase 1 for the step that the copy of the state is at.\n\
                    # TYPE almanac_copy_phase gauge\n"
        .to_owned();
    for phase in Phase::ALL {
        let is_now = u8::from(phase == stage.phase);
        page += &format!("almanac_copy_phase{{phase=\"{}\"}} {is_now}\n", phase.name());
    }
    let counts = [
        ("done", "What the step has copied so far.", stage.done),
        ("total", "What the step has to copy in all.", stage.total),
        ("bytes", "Bytes that the copy has received so far.", stage.bytes),
    ];
    for (name, help, value) in counts {
        let name = format!("almanac_copy_{name}");
        page += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Stage = Stage { phase: Phase::State, done: 250, total: 1_000, bytes: 2_500_000 };

    #[test]
    fn a_line_says_how_much_of_how_much_how_fast_and_how_long_still() {
        assert_eq!(describe(&HALF), "copying, step 2 of 5: state, 250 of 1000 operations (25 %), 2.5 MB",);
        let before = Stage { done: 150, bytes: 500_000, ..HALF };
        let speed = speed(&before, &HALF, Duration::from_secs(5));
        assert_eq!(speed, ", 20 operations and 0.4 MB a second, about 38 s left");
    }

    #[test]
    fn a_copy_that_stands_still_says_so() {
        assert_eq!(
            speed(&HALF, &HALF, Duration::from_secs(5)),
            ", 0 operations and 0.0 MB a second, nothing came meanwhile"
        );
    }

    #[test]
    fn phases_that_count_nothing_say_their_name() {
        let stage = Stage { phase: Phase::Certificate, ..Stage::default() };
        assert_eq!(describe(&stage), "copying, step 1 of 5: header and certificate");
        assert_eq!(speed(&stage, &stage, Duration::from_secs(5)), "");
        let end = Stage { phase: Phase::Opening, ..Stage::default() };
        assert_eq!(describe(&end), "copying, step 5 of 5: opening");
    }

    #[test]
    fn numbers_at_their_limits_are_no_trouble() {
        let none = Stage { phase: Phase::Names, done: 0, total: 0, bytes: 0 };
        assert!(describe(&none).contains("0 of 0 values (0 %)"));
        let all = Stage { done: u64::MAX, total: u64::MAX, bytes: u64::MAX, ..none };
        assert!(describe(&all).contains("(100 %)"));
        assert!(speed(&none, &all, Duration::from_nanos(1)).contains("about 0 s left"));
    }

    #[test]
    fn pages_say_the_same_for_machines() {
        let health: serde_json::Value = serde_json::from_str(&render_health(&HALF)).unwrap();
        assert_eq!(
            health,
            json!({
                "status": "copying", "phase": "state", "done": 250, "total": 1_000, "percent": 25,
                "bytes": 2_500_000
            })
        );
        let metrics = render_metrics(&HALF);
        for line in [
            "almanac_copy_phase{phase=\"state\"} 1",
            "almanac_copy_phase{phase=\"opening\"} 0",
            "almanac_copy_done 250",
            "almanac_copy_total 1000",
            "almanac_copy_bytes 2500000",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        assert_eq!(metrics.matches("# HELP ").count(), metrics.matches("# TYPE ").count());
    }
}
