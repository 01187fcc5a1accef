//! What a generation serves at which path. `poem::Route` finds the path; the server selects by method, so that errors
//! have the format of a dialect.

use crate::mapping::config::gateway::{Docs, GatewayPlan};
use crate::mapping::config::gateway_paths::DOCS_PATHS;
use crate::mapping::config::path_template::PathTemplate;
use crate::mapping::config::route::METHODS;
use fnv::FnvHashMap;
use poem::endpoint::make_sync;
use poem::error::RouteError;
use poem::http::Uri;
use poem::{Endpoint, Request, Response, Route};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub struct PathTable {
    /// Paths with their targets for one method: a literal path takes precedence only over paths with that method.
    by_method: Vec<(&'static str, Arc<Route>)>,
    all: Arc<Route>,
    /// The targets of literal paths, by method: poem prefers them, and most requests have one.
    literal: Vec<(&'static str, LiteralPaths)>,
}

/// The targets of paths without parameters.
type LiteralPaths = FnvHashMap<String, Arc<[Target]>>;

/// One thing that is served at a path; the numbers are indexes into the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Route(usize),
    StaticRoute(usize),
    Metrics,
    Status,
    ApiDocs,
}

impl Target {
    /// The method of its endpoint.
    pub fn method(self, gateway: &GatewayPlan) -> &str {
        match self {
            Target::Route(at) => &gateway.routes[at].method,
            Target::StaticRoute(at) => &gateway.static_routes[at].method,
            Target::ApiDocs | Target::Metrics | Target::Status => "GET",
        }
    }

    /// The methods that it allows: its own, and at every endpoint HEAD and OPTIONS.
    pub fn methods(self, gateway: &GatewayPlan) -> impl Iterator<Item = &str> {
        let own = self.method(gateway);
        [own].into_iter().chain(["HEAD", "OPTIONS"].into_iter().filter(move |method| *method != own))
    }

    /// Its path as gateway.yaml writes it, for logs and metrics.
    pub fn path(self, gateway: &GatewayPlan) -> &str {
        match self {
            Target::Route(at) => &gateway.routes[at].path,
            Target::StaticRoute(at) => &gateway.static_routes[at].path,
            Target::Metrics => gateway.metrics.as_deref().unwrap_or_default(),
            Target::Status => gateway.status_path().unwrap_or_default(),
            Target::ApiDocs => "/docs",
        }
    }
}

/// The regular expression of a parameter before the end of a path.
const PARAMETER: &str = "[^/]+";

impl PathTable {
    pub fn new(gateway: &GatewayPlan) -> Result<PathTable, RouteError> {
        let paths = |allowed: &dyn Fn(Target) -> bool| PathTable::paths(gateway, allowed);
        let (mut by_method, mut literal) = (Vec::new(), Vec::new());
        let (all, mut built) = (paths(&|_| true), Vec::new());
        for method in METHODS {
            let of_method = paths(&|target| target.methods(gateway).any(|allowed| allowed == *method));
            literal.push((*method, of_method.literal()));
            by_method.push((*method, of_method.build(&mut built)?));
        }
        Ok(PathTable { by_method, all: all.build(&mut built)?, literal })
    }

    fn paths(gateway: &GatewayPlan, allowed: &dyn Fn(Target) -> bool) -> Paths {
        let mut paths = Paths::default();
        let add = |paths: &mut Paths, path: &str, target| {
            if allowed(target) {
                paths.add(path, target);
            }
        };
        // In order of precedence.
        gateway.metrics.iter().for_each(|path| add(&mut paths, path, Target::Metrics));
        for (at, route) in gateway.routes.iter().enumerate() {
            add(&mut paths, &route.path, Target::Route(at));
        }
        for (at, route) in gateway.static_routes.iter().enumerate().filter(|(_, route)| gateway.serves(route)) {
            add(&mut paths, &route.path, Target::StaticRoute(at));
        }
        // The gateway's own endpoints give way to those of the mappings.
        let docs = DOCS_PATHS.into_iter().filter(|_| gateway.docs == Docs::Public).map(|path| (path, Target::ApiDocs));
        let status = gateway.status_path().map(|path| (path, Target::Status));
        for (path, target) in docs.chain(status).filter(|(_, target)| allowed(*target)) {
            paths.add_if_free(path, target);
        }
        paths
    }

    /// What is served at the path of `uri` with this method, or else with others; empty if the path is unknown.
    pub async fn find(&self, method: &str, uri: &Uri) -> Arc<[Target]> {
        let literal =
            self.literal.iter().find(|(name, _)| *name == method).and_then(|(_, paths)| paths.get(uri.path()));
        if let Some(targets) = literal {
            return targets.clone();
        }
        let of_method = self.by_method.iter().find(|(name, _)| *name == method).map(|(_, route)| route);
        for route in of_method.into_iter().chain([&self.all]) {
            let found = route.call(Request::builder().uri(uri.clone()).finish()).await;
            if let Some(targets) = found.ok().and_then(|found| found.data::<Arc<[Target]>>().cloned()) {
                return targets;
            }
        }
        Arc::default()
    }
}

impl fmt::Debug for PathTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathTable").finish_non_exhaustive()
    }
}

/// Patterns with their targets: poem accepts each pattern once.
#[derive(Default, PartialEq)]
struct Paths(BTreeMap<String, Vec<Target>>);

/// What was built: most methods have the paths of another one, and regular expressions take time.
type BuiltRoutes = Vec<(Paths, Arc<Route>)>;

impl Paths {
    fn add(&mut self, path: &str, target: Target) {
        if let Some(pattern) = pattern(path) {
            self.0.entry(pattern).or_default().push(target);
        }
    }

    fn add_if_free(&mut self, path: &str, target: Target) {
        if let Some(pattern) = pattern(path) {
            self.0.entry(pattern).or_insert_with(|| vec![target]);
        }
    }

    fn literal(&self) -> FnvHashMap<String, Arc<[Target]>> {
        let literal = self.0.iter().filter(|(pattern, _)| !pattern.contains('<'));
        literal.map(|(path, targets)| (path.clone(), targets.as_slice().into())).collect()
    }

    fn build(self, built: &mut BuiltRoutes) -> Result<Arc<Route>, RouteError> {
        if let Some((_, same)) = built.iter().find(|(paths, _)| *paths == self) {
            return Ok(same.clone());
        }
        // poem tries literal paths first, then regular expressions in the order in which they were added. The more
        // specific one is longer: `{model}:verb` is tried before `{model}`.
        let mut paths: Vec<_> = self.0.iter().collect();
        paths.sort_by_key(|(pattern, _)| Reverse(pattern.len()));
        let mut route = Route::new();
        for (pattern, targets) in paths {
            let targets: Arc<[Target]> = targets.as_slice().into();
            let found = make_sync(move |_| Response::builder().extension(targets.clone()).finish());
            route = route.try_at(pattern, found)?;
        }
        let route = Arc::new(route);
        built.push((self, route.clone()));
        Ok(route)
    }
}

/// A path in the syntax of `poem::Route`; `None` if no request can have it.
fn pattern(path: &str) -> Option<String> {
    let below_root = path.strip_prefix('/')?;
    // poem would merge the slashes, and take the other characters for its own syntax.
    if !path.contains(['{', ':', '*', '<']) && !path.contains("//") {
        return Some(path.to_owned());
    }
    // One regular expression for the whole path below the root: poem 3.1.12 misplaces a regular expression when a later
    // path splits the literal text before it, and a single slash cannot be split.
    let literals = PathTemplate::parse(below_root).map_or_else(|_| vec![below_root], |template| template.literals);
    let regex = literals.into_iter().map(escape).collect::<Vec<_>>().join(PARAMETER);
    let (before, rest_of_path) = regex.strip_suffix(PARAMETER).map_or((&*regex, ""), |before| (before, ".+"));
    Some(format!("/<^{before}{rest_of_path}$>"))
}

/// Literal text in a regular expression of poem, which ends at the first `>`.
fn escape(literal: &str) -> String {
    let escaped =
        |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{{{:x}}}", u32::from(c)) };
    literal.chars().map(escaped).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/reload_path_table.rs"]
mod tests;
