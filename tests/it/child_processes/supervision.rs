//! The supervision of child processes: start, restart, limits, and the end of the gateway.

use super::{launch, start};
use crate::support::{Client, Request, assert_within, chat, eventually};
use std::time::{Duration, Instant};

/// Whether a process runs: it exists and is no zombie.
fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

fn signal(pid: u32, signal: &str) {
    let status = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn the_gateway_answers_while_the_worker_starts_and_requests_wait() {
    let gateway = start("codex-legacy", "", &[("WORKER_START", "slow")]);
    assert_eq!(gateway.server.fetch(Request::get("/v1/models")).status(), 200);
    assert_eq!(gateway.content("Hi"), "Hello from the worker.");
}

#[test]
fn a_worker_without_a_session_is_not_ready() {
    for (start_mode, reason) in [("silent", "no session within"), ("refuse", "no session today"), ("exit", "has ended")]
    {
        // The others answer or end, but on a busy machine not within a second.
        let limit = if start_mode == "silent" { "1s" } else { "60s" };
        let process = format!("start_timeout: {limit}, while_starting: reject, restart_limit: 1, restart_first: 10ms");
        let gateway = start("codex-legacy", &process, &[("WORKER_START", start_mode)]);
        eventually("the breaker is open", || {
            let reply = gateway.server.fetch(chat("Hi"));
            assert_eq!(reply.status(), 503, "{}", reply.text());
            let metrics = gateway.server.fetch(Request::get("/metrics")).text();
            assert!(metrics.contains("reframe_workers_ready{backend=\"worker\"} 0"), "{metrics}");
            let is_open = metrics.contains("reframe_worker_failures_total{backend=\"worker\"} 2");
            (is_open && reply.text().contains(reason)).then_some(())
        });
        let ready = gateway.server.fetch(Request::get("/readyz"));
        assert_eq!(ready.status(), 503);
        assert!(ready.text().contains(r#""reason":"restart_limit_exceeded""#), "{}", ready.text());
    }
}

#[test]
fn a_request_that_may_not_wait_is_rejected_at_once() {
    let at_once = |gateway: &super::WorkerGateway, what: &str| {
        let sent = Instant::now();
        let reply = gateway.server.fetch(chat("Hi"));
        assert_eq!((reply.status(), reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
        assert_within(what, sent.elapsed(), Duration::from_secs(1));
    };
    let settings = "start_timeout: 10m, while_starting: reject";
    let starting = start("codex-legacy", settings, &[("WORKER_START", "silent")]);
    at_once(&starting, "a rejection while the worker starts");
    let settings = "start_timeout: 10m, restart_limit: 1, restart_first: 10ms";
    let failed = start("codex-legacy", settings, &[("WORKER_START", "exit")]);
    let readiness = || failed.server.fetch(Request::get("/readyz")).text();
    eventually("the breaker is open", || readiness().contains("restart_limit_exceeded").then_some(()));
    at_once(&failed, "a rejection while restarts are paused");
}

#[test]
fn a_worker_without_a_session_is_stopped_at_once() {
    let settings = "start_timeout: 10m, stop_timeout: 10m, while_starting: reject";
    let mut gateway = start("codex-legacy", settings, &[("WORKER_START", "silent")]);
    eventually("the process is started", || (gateway.pids().len() == 1).then_some(()));
    gateway.server.terminate();
    let began = Instant::now();
    assert!(gateway.server.wait().success());
    assert_within("the end of the gateway", began.elapsed(), Duration::from_secs(3));
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    for (process, why) in [
        ("command: /nowhere/codex", "cannot start `/nowhere/codex`: there is no such file"),
        ("command: no-such-codex", "cannot start `no-such-codex`: no folder of PATH has this program"),
        ("environment: { PATH: /nowhere }", "the worker process has ended"),
    ] {
        let gateway = start("codex-legacy", &format!("while_starting: reject, {process}"), &[]);
        let reply = eventually("the reason", || {
            let reply = gateway.server.fetch(chat("Hi"));
            reply.text().contains(why).then_some(reply)
        });
        assert_eq!(reply.status(), 503);
        gateway.server.wait_for_log(why);
    }
}

#[test]
fn the_death_of_a_worker_fails_its_turns_at_once_and_another_one_is_started() {
    let gateway = start("codex-legacy", "restart_first: 10ms", &[]);
    let mut streams: Vec<_> = (0..3).map(|_| gateway.server.stream(chat("mode:slow").streamed())).collect();
    streams.iter_mut().for_each(|stream| assert!(stream.next().is_some()));
    let pid = gateway.pids()[0];
    signal(pid, "-KILL");
    let killed = Instant::now();
    for stream in streams {
        let last: String = stream.rest().iter().map(|frame| frame.data.clone()).collect();
        assert!(last.contains("the worker process has ended"), "{last}");
    }
    assert_within("turns fail after the death of their worker", killed.elapsed(), Duration::from_millis(250));
    assert_eq!(gateway.content("Hi"), "Hello from the worker.");
    assert_eq!(gateway.pids().len(), 2);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "no zombie");
}

#[test]
fn a_worker_that_ends_during_a_turn_is_an_error_of_the_dialect() {
    let gateway = start("codex-legacy", "restart_first: 10ms", &[]);
    for _ in 0..4 {
        let reply = gateway.server.fetch(chat("mode:crash"));
        assert_eq!(reply.status(), 502, "{}", reply.text());
        // The next turn is never given to the worker that has ended.
        assert_eq!(gateway.content("Hi"), "Hello from the worker.");
    }
}

#[test]
fn a_message_that_is_too_large_restarts_the_worker() {
    let gateway = start("codex-legacy", "restart_first: 10ms, line_bytes: 1MiB", &[]);
    let reply = gateway.server.fetch(chat("mode:huge"));
    assert_eq!(reply.status(), 502);
    assert!(reply.text().contains("larger than"), "{}", reply.text());
    assert_eq!(gateway.content("Hi"), "Hello from the worker.");
}

#[test]
fn a_worker_that_writes_nothing_is_replaced() {
    let gateway = start("codex-legacy", "restart_first: 10ms, answer_timeout: 3s, stop_timeout: 1s", &[]);
    gateway.content("Hi");
    signal(gateway.pids()[0], "-STOP");
    let reply = gateway.server.fetch(chat("Hi"));
    assert_eq!(reply.status(), 502, "{}", reply.text());
    assert!(reply.text().contains("it has written nothing for 3 s"), "{}", reply.text());
    // It is being ended.
    let ready = gateway.server.fetch(Request::get("/readyz"));
    assert!(ready.status() == 503 || gateway.pids().len() > 1, "{}", ready.text());
    assert_eq!(gateway.content("Hi"), "Hello from the worker.");
    assert!(!is_running(gateway.pids()[0]));
}

#[test]
fn a_worker_that_reads_nothing_is_replaced() {
    let settings = "restart_first: 10ms, read_timeout: 3s, stop_timeout: 1s";
    let gateway = start("jobs", settings, &[]);
    gateway.content("Hi");
    signal(gateway.pids()[0], "-STOP");
    let reply = gateway.server.fetch(chat(&"x".repeat(500_000)));
    assert_eq!(reply.status(), 502, "{}", reply.text());
    assert!(reply.text().contains("it has read nothing for 3 s"), "{}", reply.text());
    gateway.content("Hi");
}

#[test]
fn what_waits_for_a_worker_is_limited_in_bytes() {
    let gateway = start("jobs", "queue_bytes: 1MiB, read_timeout: none", &[]);
    gateway.content("Hi");
    let worker = gateway.pids()[0];
    signal(worker, "-STOP");
    let (done, replies) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let (done, server) = (done.clone(), &gateway.server);
            scope.spawn(move || done.send(server.fetch(chat(&"x".repeat(500_000)))).unwrap());
        }
        // Three turns are more than the limit.
        for reply in replies.iter().take(3) {
            assert_eq!(reply.status(), 503, "{}", reply.text());
            assert!(reply.text().contains("more than 1048576 bytes are waiting for it"), "{}", reply.text());
        }
        signal(worker, "-CONT");
        replies.iter().take(3).for_each(|reply| assert_eq!(reply.status(), 200, "{}", reply.text()));
    });
}

#[test]
fn workers_are_replaced_after_their_turns_without_a_pause() {
    let gateway = start("codex-legacy", "recycle_turns: 2", &[]);
    for _ in 0..6 {
        assert_eq!(gateway.content("Hi"), "Hello from the worker.");
    }
    let first = gateway.pids()[0];
    eventually("the first worker ends", || (gateway.pids().len() >= 2 && !is_running(first)).then_some(()));
}

#[test]
fn no_turn_is_lost_while_workers_are_replaced() {
    let gateway = start("codex-legacy", "recycle_turns: 1", &[]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..40).for_each(|_| assert_eq!(gateway.content("Hi"), "Hello from the worker.")));
        }
    });
    assert!(gateway.pids().len() > 2, "workers were replaced");
}

#[test]
fn turns_that_an_old_worker_serves_do_not_replace_the_new_one() {
    let gateway = start("codex-legacy", "recycle_turns: 1", &[("WORKER_START", "slow")]);
    gateway.content("Hi");
    eventually("a second worker starts", || (gateway.pids().len() == 2).then_some(()));
    gateway.content("This turn is served by the first worker.");
    let first = gateway.pids()[0];
    eventually("the first worker ends", || (!is_running(first)).then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(gateway.pids().len(), 2, "the new worker has served no turn");
}

#[test]
fn workers_are_replaced_after_some_time() {
    let gateway = start("codex-legacy", "recycle_after: 1s", &[]);
    eventually("two replacements", || {
        gateway.content("Hi");
        (gateway.pids().len() >= 3).then_some(())
    });
}

#[test]
fn a_worker_that_closes_its_input_is_replaced() {
    let gateway = start("codex-legacy", "restart_first: 10ms, stop_timeout: 1s", &[]);
    gateway.content("mode:deaf");
    gateway.server.wait_for_log("it closed its input");
    assert_eq!(gateway.content("Hi"), "Hello from the worker.");
}

#[test]
fn the_pause_before_a_restart_doubles_up_to_a_limit() {
    let settings = "restart_first: 20ms, restart_longest: 100ms, restart_limit: 5, while_starting: reject";
    let gateway = start("codex-legacy", settings, &[("WORKER_START", "exit")]);
    let log = gateway.server.wait_for_log("worker failed too often");
    let pauses = log.lines().filter_map(|line| line.split("pause_ms=").nth(1)?.split_whitespace().next());
    assert_eq!(pauses.collect::<Vec<_>>(), ["20", "40", "80", "100", "100"]);
}

#[test]
fn turns_go_to_the_least_busy_of_several_workers() {
    let gateway = start("codex-legacy", "workers: 2", &[]);
    eventually("two workers", || (gateway.server.log().matches("worker ready").count() == 2).then_some(()));
    let mut streams = Vec::new();
    for _ in 0..6 {
        let mut stream = gateway.server.stream(chat("mode:held").streamed());
        let frames = std::iter::from_fn(|| stream.next().map(|frame| frame.json()));
        let mut texts = frames.filter_map(|frame| Some(frame["choices"][0]["delta"]["content"].as_str()?.to_owned()));
        let pid: u32 = texts.find(|text| !text.is_empty()).unwrap().parse().unwrap();
        streams.push((pid, stream));
    }
    for worker in gateway.pids() {
        assert_eq!(streams.iter().filter(|(pid, _)| *pid == worker).count(), 3, "turns of one worker");
    }
}

#[test]
fn turns_beyond_the_limit_of_a_worker_are_rejected() {
    let gateway = start("codex-legacy", "turns_per_worker: 1", &[]);
    let mut slow = gateway.server.stream(chat("mode:slow").streamed());
    assert!(slow.next().is_some());
    let reply = gateway.server.fetch(chat("Hi"));
    assert_eq!((reply.status(), reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
}

#[test]
fn a_turn_that_the_worker_is_still_closing_takes_no_place() {
    let gateway = start("jobs", "turns_per_worker: 1", &[("WORKER_CLOSE", "0.5")]);
    for _ in 0..5 {
        assert_eq!(gateway.content("Hi"), "Working. ");
    }
}

#[test]
fn turns_wait_for_a_worker_that_closes_turns_more_slowly_than_it_serves_them() {
    let gateway = start("jobs", "start_timeout: 60s", &[("WORKER_CLOSE", "0.05")]);
    for _ in 0..80 {
        assert_eq!(gateway.content("Hi"), "Working. ");
    }
}

#[test]
fn a_turn_does_not_wait_for_ever_for_a_worker_that_closes_nothing() {
    // The time that the last turn waits, and that a busy machine may need to start the worker.
    let gateway = start("jobs", "start_timeout: 8s", &[("WORKER_CLOSE", "1000")]);
    for _ in 0..32 {
        assert_eq!(gateway.content("Hi"), "Working. ");
    }
    let reply = gateway.server.fetch(chat("Hi"));
    assert_eq!((reply.status(), reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    assert!(reply.text().contains("the workers are still closing earlier turns"), "{}", reply.text());
}

#[test]
fn the_standard_error_of_a_worker_is_logged_without_secrets() {
    let gateway = start("codex-legacy", "", &[("WORKER_SECRET_KEY", "a-secret-of-the-worker")]);
    assert_eq!(gateway.content("mode:stderr"), "Hello from the worker.");
    let log = gateway.server.wait_for_log("standard error of the worker");
    assert!(log.contains("warning with [redacted]"), "{log}");
    assert!(!log.contains("a-secret-of-the-worker"), "{log}");
    let log = gateway.server.wait_for_log("lines of the worker's standard error were omitted");
    let logged = log.lines().filter(|line| line.contains("warning with [redacted]")).count();
    assert!(logged < 200, "{logged} of 200 lines");
}

#[test]
fn workers_end_with_the_gateway() {
    let mut gateway = start("codex-legacy", "", &[]);
    gateway.content("Hi");
    let pid = gateway.pids()[0];
    gateway.server.terminate();
    assert!(gateway.server.wait().success());
    assert!(!is_running(pid));
}

#[test]
fn workers_end_with_a_killed_gateway() {
    let gateway = start("codex-legacy", "workers: 2", &[]);
    gateway.content("Hi");
    let pids = eventually("two workers", || Some(gateway.pids()).filter(|pids| pids.len() == 2));
    let mut running = gateway.server.stream(chat("mode:slow").streamed());
    assert!(running.next().is_some());
    signal(gateway.server.pid(), "-KILL");
    eventually("the workers end", || pids.iter().all(|pid| !is_running(*pid)).then_some(()));
    // Every process below the gateway has a variable with the path of this test.
    let mark = gateway.pids.to_string_lossy().into_owned();
    eventually("no orphan", || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
        let is_ours = |environment: &Vec<u8>| String::from_utf8_lossy(environment).contains(&mark);
        (!environments.into_iter().any(|environment| is_ours(&environment))).then_some(())
    });
}

#[test]
fn a_reload_that_changes_a_process_needs_a_restart() {
    let (launch, dir) = launch("codex-legacy", "");
    let file = dir.path("layer/gateway.yaml");
    let server = launch.with_admin().add(dir).start();
    assert_eq!(server.fetch(chat("Hi")).status(), 200);
    let text = std::fs::read_to_string(&file).unwrap().replace("arguments: []", "arguments: [ other ]");
    std::fs::write(&file, text).unwrap();
    let (status, report) = server.admin().reload();
    assert_eq!(status, 200, "{report}");
    assert!(report.to_string().contains("backends.worker.process"), "{report}");
    assert_eq!(Client::connect(server.addr()).fetch(chat("Hi")).status(), 200);
}
