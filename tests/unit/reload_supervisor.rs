//! Unit tests of `reload::supervisor`.

use super::*;
use std::sync::mpsc::channel;
use std::time::Duration;

fn set() -> Arc<[SourceFile]> {
    let file = SourceFile { name: "a.yaml".into(), shown: "a.yaml".into(), layer: 0, text: "x: 1\n".into() };
    [file].into()
}

fn impatient() -> Supervisor {
    let soon = Duration::from_millis(1);
    Supervisor { stall_limit: soon, grace: soon, ..Supervisor::default() }
}

fn message(error: &SetError) -> (&str, Span) {
    assert_eq!(error.diagnostics.len(), 1);
    (&error.diagnostics[0].message, error.diagnostics[0].span)
}

#[test]
fn a_load_that_ends_returns_its_result() {
    let loaded = Supervisor::default().run(&set(), |files, _| files[0].text.len());
    assert_eq!(loaded.unwrap(), 5);
}

#[test]
fn a_load_stops_at_its_next_step_when_its_time_is_over() {
    let patient = Supervisor { time_limit: Duration::ZERO, ..Supervisor::default() };
    let stopped = patient.run(&set(), |_, budget| while budget.spend(0) {});
    assert!(stopped.is_ok());
}

#[test]
fn a_load_that_makes_progress_is_not_stopped_however_slow_the_machine_is() {
    // A load needs several times the limit for a step. A busy machine may stop its thread for a part of the limit.
    let slow = Supervisor { stall_limit: Duration::from_millis(500), ..Supervisor::default() };
    let finished = slow.run(&set(), |_, budget| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if !budget.spend(1) {
                return false;
            }
            thread::yield_now();
        }
        true
    });
    assert!(finished.unwrap());
}

#[test]
fn the_steps_of_a_load_are_limited_whatever_its_time() {
    let stopped = Supervisor::default().run(&set(), |_, budget| while budget.spend(1000) {});
    assert!(stopped.is_ok());
}

#[test]
fn a_load_that_takes_no_more_steps_is_left_behind_and_two_of_them_are_the_limit() {
    let supervisor = impatient();
    let mut held = Vec::new();
    for _ in 0..MAX_LEFT_BEHIND {
        let (go_on, wait) = channel::<()>();
        let error = supervisor.run(&set(), move |_, budget| {
            budget.begin("a.yaml", "waiting");
            let _ = wait.recv();
        });
        held.push(go_on);
        let error = error.unwrap_err();
        // The load may not have begun when its time is over.
        let (text, _) = message(&error);
        assert!(text.starts_with("loading this set takes too long: it was still"), "{text}");
    }
    let error = supervisor.run(&set(), |_, _| ()).unwrap_err();
    assert_eq!(message(&error).0, "2 earlier loads took too long and are still running");
    drop(held);
    while supervisor.left_behind.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
    let patient = Supervisor { stall_limit: STALL_LIMIT, ..supervisor };
    assert!(patient.run(&set(), |_, _| ()).is_ok());
}

#[test]
fn a_load_that_panics_is_refused_at_the_file_that_it_was_busy_with() {
    let error = Supervisor::default().run(&set(), |_, budget| {
        budget.begin("a.yaml", "parsing this file");
        panic!("a defect");
    });
    let error = error.unwrap_err();
    let (text, span) = message(&error);
    assert_eq!(text, "loading this set failed while parsing this file: a defect");
    assert_eq!(error.sources.show(span), "a.yaml:1:1");
}

#[test]
fn a_load_has_a_deep_stack() {
    fn deep(levels: usize) -> usize {
        let kept = std::hint::black_box([levels as u8; 1024]);
        if levels == 0 { 0 } else { deep(levels - 1) + usize::from(kept[0] > 0) }
    }
    assert!(Supervisor::default().run(&set(), |_, _| deep(10_000)).unwrap() > 0);
}
