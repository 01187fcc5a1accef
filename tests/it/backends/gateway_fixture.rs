//! A gateway with one mock backend; the test sets its next response.

use crate::support::{Launch, MockBackend, MockResponse, RecordedRequest, Reply, Request, Server, serve};
use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub struct GatewayFixture {
    pub server: Server,
    pub backend: MockBackend,
    next: Arc<Mutex<MockResponse>>,
}

/// A fixture that is shared by several tests.
type Shared = (&'static Mutex<GatewayFixture>, Child);

impl GatewayFixture {
    /// Shared by all tests of this backend; started with `--backend NAME=URL`.
    pub fn of(name: &str) -> MutexGuard<'static, GatewayFixture> {
        GatewayFixture::shared(name, || GatewayFixture::own(name))
    }

    /// Tests share the fixture of this name one after the other, because starting a gateway is slow.
    pub fn shared(name: &str, start: impl FnOnce() -> GatewayFixture) -> MutexGuard<'static, GatewayFixture> {
        static ALL: LazyLock<Mutex<HashMap<String, Shared>>> = LazyLock::new(Mutex::default);
        let fixture = {
            let mut all = lock(&ALL);
            let shared = all.entry(name.to_owned()).or_insert_with(|| {
                let fixture = start();
                let killer = fixture.server.kill_on_exit();
                (Box::leak(Box::new(Mutex::new(fixture))), killer)
            });
            shared.0
        };
        lock(fixture)
    }

    /// Like `of`, for one test only.
    pub fn own(name: &str) -> GatewayFixture {
        GatewayFixture::launched(name, |launch| launch)
    }

    pub fn launched(name: &str, with: impl FnOnce(Launch) -> Launch) -> GatewayFixture {
        let next = Arc::new(Mutex::new(MockResponse::new(500)));
        let backend = MockBackend::start({
            let next = Arc::clone(&next);
            move |_| lock(&next).clone()
        });
        let server = with(serve().arg("--backend").arg(format!("{name}={}", backend.url()))).start();
        GatewayFixture { server, backend, next }
    }

    /// Sets the backend's response to every request.
    pub fn set_response(&self, answer: MockResponse) -> &GatewayFixture {
        *lock(&self.next) = answer;
        self
    }

    pub fn fetch(&self, request: impl Into<Request>) -> Reply {
        self.server.fetch(request)
    }

    /// The backend's last request.
    pub fn last(&self) -> RecordedRequest {
        self.backend.requests().pop().expect("the backend received no request")
    }
}

/// Ignores poisoning by a failed test: the next test sets everything that it needs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
