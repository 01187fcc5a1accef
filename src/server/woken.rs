//! A future that is polled only when something has woken it, and not whenever its task is woken for something else: timers
//! and signals of a connection that mostly is woken for its requests.

use futures_util::task::AtomicWaker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub struct Woken<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
    /// Of `wakes`.
    waker: Waker,
    /// The task that is registered.
    task: Option<Waker>,
}

struct Wakes {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.task.wake();
    }
}

impl<F: Future> Woken<F> {
    pub fn new(future: F) -> Woken<F> {
        let wakes = Arc::new(Wakes { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&wakes));
        Woken { future: Box::pin(future), wakes, waker, task: None }
    }

    /// Not to be polled after it was ready.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.wakes.task.register(cx.waker());
            self.task = Some(cx.waker().clone());
        }
        // After the registration: a wake before it would be lost.
        if !self.wakes.is_woken.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        // The wake has taken what was registered.
        self.wakes.task.register(cx.waker());
        self.wakes.is_woken.store(false, Ordering::SeqCst);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Counts how often it wakes.
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn every_wake_wakes_the_task_and_polls_the_future_once() {
        let inner = Arc::new(std::sync::Mutex::new((0, None::<Waker>)));
        let seen = Arc::clone(&inner);
        let mut woken = Woken::new(poll_fn(move |cx| {
            let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *seen = (seen.0 + 1, Some(cx.waker().clone()));
            Poll::<()>::Pending
        }));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = &mut Context::from_waker(&waker);
        for wakes in 0..5 {
            for _ in 0..3 {
                assert!(woken.poll(cx).is_pending());
            }
            let (polls, waker) = inner.lock().map(|seen| (seen.0, seen.1.clone())).unwrap_or_default();
            assert_eq!((polls, count.0.load(Ordering::SeqCst)), (wakes + 1, wakes));
            waker.into_iter().for_each(Waker::wake);
        }
    }
}
