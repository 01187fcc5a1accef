//! Unit tests of `server::write_stall`. Time is simulated.

use super::*;
use std::future::pending;

const LIMIT: Duration = Duration::from_secs(60);

fn timeout(limit: Option<Duration>) -> WriteTimeout {
    let timeout = WriteTimeout::default();
    timeout.set(limit);
    timeout
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_too_long_expires_exactly_then() {
    let (watch, timeout, began) = (StallWatch::start(), timeout(Some(LIMIT)), Instant::now());
    let waits = Arc::clone(&watch);
    let connection = async move {
        sleep(Duration::from_secs(40)).await;
        waits.wait();
        sleep(Duration::from_secs(59)).await;
        waits.progress();
        sleep(Duration::from_secs(1)).await;
        waits.wait();
        sleep(Duration::from_secs(30)).await;
        // The clock goes on.
        waits.wait();
        pending::<()>().await;
    };
    assert!(watch.guard(connection, &timeout).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 40 + 59 + 1 + 60);
    assert!(watch.has_expired());
    assert!(timeout.metrics.encode().contains("reframe_client_timeouts_total{timeout=\"write\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn silence_is_no_stall_and_without_a_limit_nothing_expires() {
    for (limit, waits) in [(Some(LIMIT), false), (None, true)] {
        let watch = StallWatch::start();
        if waits {
            watch.wait();
        }
        let timeout = timeout(limit);
        let silence = sleep(Duration::from_secs(3600));
        assert!(watch.guard(silence, &timeout).await.is_ok());
        assert!(!watch.has_expired());
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_set_later_applies() {
    let (watch, timeout, began) = (StallWatch::start(), Arc::new(timeout(None)), Instant::now());
    watch.wait();
    let later = Arc::clone(&timeout);
    tokio::spawn(async move {
        sleep(Duration::from_secs(90)).await;
        later.set(Some(LIMIT));
    });
    assert!(watch.guard(pending::<()>(), &timeout).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn the_watch_of_a_stream_is_found_by_its_request() {
    let (connection, stream) = (StallWatch::start(), StallWatch::start());
    let of_request = async { ResponseWatch::of_request(Arc::clone(&connection)) };
    let http2 = STREAM_WATCH.scope(Arc::clone(&stream), of_request).await;
    let http1 = ResponseWatch::of_request(Arc::clone(&connection));
    stream.expired.store(true, Ordering::Relaxed);
    assert_eq!((http1.has_expired(), http2.has_expired()), (false, true));
    connection.expired.store(true, Ordering::Relaxed);
    assert!(http1.has_expired());
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_blocked_connection_is_not_counted_too() {
    // The connection goes on after so many seconds; the stream ends with it, or expires.
    let cases = [(None, Some(61), 61), (Some(90), None, 90), (None, None, 120)];
    for (goes_on_after, ends_after, expected) in cases {
        let (connection, stream) = (StallWatch::start(), StallWatch::start());
        let of_request = async { ResponseWatch::of_request(Arc::clone(&connection)) };
        STREAM_WATCH.scope(Arc::clone(&stream), of_request).await;
        let (timeout, began) = (timeout(Some(LIMIT)), Instant::now());
        stream.wait();
        connection.wait();
        let socket = async {
            if let Some(seconds) = goes_on_after {
                sleep(Duration::from_secs(seconds)).await;
                connection.progress();
            }
            match ends_after {
                Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                None => pending().await,
            }
        };
        let ended = stream.guard(socket, &timeout).await;
        assert_eq!((ended.is_ok(), began.elapsed().as_secs()), (ends_after.is_some(), expected));
        let is_counted = timeout.metrics.encode().contains("{timeout=\"write\"} 1");
        assert_eq!(is_counted, ended.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_and_streams_that_expire_together_are_counted_once() {
    let connection = StallWatch::start();
    let streams = [StallWatch::start(), StallWatch::start()];
    let timeout = timeout(Some(LIMIT));
    for stream in &streams {
        let of_request = async { ResponseWatch::of_request(Arc::clone(&connection)) };
        STREAM_WATCH.scope(Arc::clone(stream), of_request).await;
        stream.wait();
    }
    let waits = async {
        // Shortly before the streams expire without it, so that all exceed what is allowed to them at about the same time.
        sleep(LIMIT - Duration::from_secs(1)).await;
        connection.wait();
        pending::<()>().await;
    };
    let [first, second] = &streams;
    let (connection_ended, first, second) = tokio::join!(
        connection.guard(waits, &timeout),
        first.guard(pending::<()>(), &timeout),
        second.guard(pending::<()>(), &timeout),
    );
    assert!(connection_ended.is_err() && first.is_err() && second.is_err());
    let metrics = timeout.metrics.encode();
    assert!(metrics.contains("reframe_client_timeouts_total{timeout=\"write\"} 1"), "{metrics}");
}
