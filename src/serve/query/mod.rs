//! The query API: an article's verdict, cluster and similar articles, and the verdict that a new text would
//! get.
//!
//! Handlers read snapshots of the open stores (`library`) and never change them; for partitions that this
//! process does not hold they ask its peers (`peers`). Everything a client controls is bounded: the time and
//! bytes of a request, and the number of concurrent questions.

mod answer;
mod explain;
mod held;
mod library;
mod peers;
mod question;
mod resolve;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connections as serve;
use super::problem::ProblemDetails;
use super::{HttpError, json as json_response};
use crate::config::Secret;
use crate::status::Guard;

use answer::{AnswerBody, Answered, FingerprintAnswer};
use explain::{ExplainRequest, Explanation};
use held::HeldPartitions;
pub use library::Library;
use library::LocalAnswer;
use peers::{FORWARDED, PeerReplies, PeerReply, Peers};
use question::Question;

/// Concurrent questions from clients.
const CLIENT_PERMITS: usize = 64;
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Concurrent questions from peers. They have their own limit: with a shared one, processes that wait for
/// each other could use up all permits and deadlock.
const PEER_PERMITS: usize = 64;

/// Describes every path, parameter and field of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// The right to work on one question.
type Permit = OwnedSemaphorePermit;

#[derive(Clone)]
struct Api {
    library: Arc<Library>,
    peers: Arc<Peers>,
    token: Option<Arc<Secret>>,
    hosts: Arc<[String]>,
    client_permits: Arc<Semaphore>,
    peer_permits: Arc<Semaphore>,
}

/// Serves the API until the process ends, and returns the address. If `http.token` is set, every request
/// needs it.
///
/// # Errors
/// The port cannot be served.
pub fn serve_queries(listen: SocketAddr, library: Library, guard: Guard) -> Result<SocketAddr, HttpError> {
    let http = &library.config.http;
    let api = Api {
        peers: Arc::new(Peers::new(http)),
        token: http.token.clone().map(Arc::new),
        hosts: http.hosts.clone().into(),
        client_permits: Arc::new(Semaphore::new(CLIENT_PERMITS)),
        peer_permits: Arc::new(Semaphore::new(PEER_PERMITS)),
        library: Arc::new(library),
    };
    let router = Router::new()
        .route("/api/v1/articles/{id}", get(article))
        .route("/api/v1/articles/{id}/fingerprint", get(fingerprint))
        .route("/api/v1/articles/{id}/similar", get(similar))
        .route("/api/v1/clusters/{id}", get(cluster))
        .route("/api/v1/check", post(check))
        .route("/api/v1/explain", post(explain))
        .route("/api/v1/openapi.json", get(openapi))
        .fallback(async || ProblemDetails::unknown("there is no such path; see /api/v1/openapi.json"))
        .method_not_allowed_fallback(async || {
            ProblemDetails::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "see /api/v1/openapi.json for the methods of a path",
            )
        })
        .layer(from_fn_with_state(api.clone(), authorise))
        .with_state(api);
    serve::start("http.query", listen, router, BODY_TIMEOUT + ANSWER_TIMEOUT, guard, || {})
}

/// Checks the token on every path. Without a configured token, checks the `Host` header instead.
async fn authorise(State(api): State<Api>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
    if let Some(host) = host.filter(|host| api.token.is_none() && !is_own_host(host, &api.hosts)) {
        let detail = format!("{host:?} is not a host name of this API; add it to http.hosts");
        return ProblemDetails::new(StatusCode::MISDIRECTED_REQUEST, "host", detail).into_response();
    }
    if let Some(token) = &api.token {
        let presented = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if !presented.is_some_and(|presented| token_matches(presented, token.reveal().as_bytes())) {
            let detail = "send the token as `Authorization: Bearer …`";
            return ProblemDetails::new(StatusCode::UNAUTHORIZED, "token", detail).into_response();
        }
    }
    next.run(request).await
}

/// True if a `Host` header names this API. This stops DNS rebinding, where a foreign web page resolves its
/// own host name to our address and reads our responses through the browser. It cannot do so with an IP
/// address, `localhost`, or a name that the operator lists.
fn is_own_host(host: &str, listed: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_number = bare.parse::<std::net::IpAddr>().is_ok();
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let local = name == "localhost" || name.ends_with(".localhost");
    is_number || local || listed.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(&name))
}

/// Compares in constant time, so that the duration does not reveal how much of a token is right.
fn token_matches(presented: &[u8], token: &[u8]) -> bool {
    let differs = (0..token.len()).fold(presented.len() ^ token.len(), |differs, at| {
        differs | usize::from(presented.get(at).copied().unwrap_or(!token[at]) ^ token[at])
    });
    std::hint::black_box(differs) == 0
}

type Id = Result<Path<String>, PathRejection>;

fn id(path: Id) -> Result<String, ProblemDetails> {
    path.map(|Path(id)| id).map_err(|error| ProblemDetails::bad_request(error.body_text()))
}

async fn article(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Article(id(path)?)) }).await
}

async fn fingerprint(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Fingerprint(id(path)?)) }).await
}

async fn similar(
    State(api): State<Api>,
    headers: HeaderMap,
    path: Id,
    RawQuery(query): RawQuery,
) -> Response {
    let question = async { Ok(Question::Similar(id(path)?, SimilarParams::parse(query.as_deref())?)) };
    api.answer(&headers, question).await
}

async fn cluster(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Cluster(id(path)?)) }).await
}

async fn check(State(api): State<Api>, headers: HeaderMap, body: Body) -> Response {
    let limit = api.library.largest_body();
    api.answer(&headers, async { Ok(Question::Check(read_body(body, limit).await?)) }).await
}

async fn explain(State(api): State<Api>, headers: HeaderMap, body: Body) -> Response {
    let limit = api.library.largest_body() * 2;
    let forwarded = headers.contains_key(FORWARDED);
    let explained = async {
        let permit = Arc::new(api.permit(forwarded)?);
        let pair = ExplainRequest::parse(&read_body(body, limit).await?)?;
        api.explain(pair, forwarded, &permit).await
    };
    match explained.await {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(problem) => problem.into_response(),
    }
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Reads the body of a request within its limits of size and time.
async fn read_body(body: Body, limit: usize) -> Result<Bytes, ProblemDetails> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let detail = format!("the body is larger than {limit} bytes, or truncated");
            Err(ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail))
        }
        Err(_) => {
            Err(ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body took too long to arrive"))
        }
    }
}

impl Api {
    fn permit(&self, forwarded: bool) -> Result<Permit, ProblemDetails> {
        let permits = if forwarded { &self.peer_permits } else { &self.client_permits };
        Arc::clone(permits).try_acquire_owned().map_err(|_| {
            let detail = "too many concurrent queries; retry";
            ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        })
    }

    /// Answers a question, or reports that too many are being worked on.
    async fn answer(
        &self,
        headers: &HeaderMap,
        question: impl Future<Output = Result<Question, ProblemDetails>>,
    ) -> Response {
        let forwarded = headers.contains_key(FORWARDED);
        let admitted = async {
            let permit = self.permit(forwarded)?;
            Ok((question.await?, permit))
        };
        let (question, permit) = match admitted.await {
            Ok(admitted) => admitted,
            Err(problem) => return ProblemDetails::into_response(problem),
        };
        let LocalAnswer { result, held } =
            self.answer_with_peers(question, forwarded, &Arc::new(permit)).await;
        let mut response = match result {
            Ok(answered) => json_response(StatusCode::OK, &answered),
            Err(problem) => problem.into_response(),
        };
        if forwarded {
            held.write(response.headers_mut());
        }
        response
    }

    /// Answers from the local stores and, if they may not have everything, from the peers too.
    async fn answer_with_peers(
        &self,
        question: Question,
        forwarded: bool,
        permit: &Arc<Permit>,
    ) -> LocalAnswer {
        let (library, own) = (Arc::clone(&self.library), question.clone());
        let here = self.work(permit, move || library.answer(&own)).await;
        let mut here = here
            .unwrap_or_else(|problem| LocalAnswer { result: Err(problem), held: HeldPartitions::default() });
        if forwarded || !self.library.needs_peers(&here) {
            return here;
        }
        let mut held = here.held.clone();
        let enough = |reply: &PeerReply| {
            held.add(&reply.held);
            let known = reply.answer.as_ref().or(here.result.as_ref().ok().map(|own| &own.body));
            let found = known.is_some_and(|answer| self.library.is_complete(answer, &held));
            held.covers(None) || found && self.library.has_one_partition_per_id()
        };
        let PeerReplies { replies, unanswered } = self.peers.ask(&question, enough).await;
        let answers = here.result.iter().map(|own| own.body.clone());
        let answers = answers.chain(replies.into_iter().filter_map(|reply| reply.answer)).collect();
        here.held = held;
        if let Some(body) = AnswerBody::merge(answers, question.limit()) {
            here.result = Ok(Answered { body, unanswered: unanswered.clone() });
        }
        if self.library.needs_peers(&here) {
            here.result = Err(incomplete(&here.held, &unanswered));
        }
        here
    }

    /// Compares two texts or articles, whichever process holds the articles.
    async fn explain(
        &self,
        pair: ExplainRequest,
        forwarded: bool,
        permit: &Arc<Permit>,
    ) -> Result<Explanation, ProblemDetails> {
        let mut known = [const { None::<FingerprintAnswer> }; 2];
        let mut unanswered = BTreeSet::new();
        for (side, known) in [&pair.a, &pair.b].into_iter().zip(&mut known) {
            if let Some(id) = side.id() {
                let question = Question::Fingerprint(id.to_owned());
                let found = self.answer_with_peers(question, forwarded, permit).await.result?;
                unanswered.extend(found.unanswered);
                if let AnswerBody::Fingerprint(answer) = found.body {
                    *known = Some(answer);
                }
            }
        }
        let library = Arc::clone(&self.library);
        let explained =
            self.work(permit, move || library.explain(pair, known.each_ref().map(Option::as_ref)));
        let mut explained = explained.await??;
        explained.unanswered = unanswered;
        Ok(explained)
    }

    /// Runs blocking work off the connection thread. The client waits a bounded time; the permit is held
    /// until the work is done.
    async fn work<T: Send + 'static>(
        &self,
        permit: &Arc<Permit>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ProblemDetails> {
        let permit = Arc::clone(permit);
        let task = tokio::task::spawn_blocking(move || {
            let output = work();
            drop(permit);
            output
        });
        match tokio::time::timeout(ANSWER_TIMEOUT, task).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(_)) => Err(ProblemDetails::internal()),
            Err(_) => {
                let detail = format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs());
                Err(ProblemDetails::new(StatusCode::GATEWAY_TIMEOUT, "late", detail))
            }
        }
    }
}

/// Nothing was found, and not every partition could be searched.
fn incomplete(held: &HeldPartitions, unanswered: &BTreeSet<String>) -> ProblemDetails {
    let absent = held.absent();
    let detail = match &absent {
        None => "the number of partitions is not known yet; retry".to_owned(),
        Some(absent) => format!(
            "it may be in partitions {absent:?}, which no process that answered holds: their process is down, is still \
             restoring them, or is missing from http.peers; retry"
        ),
    };
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "incomplete", detail)
        .with("unanswered", json!(unanswered))
        .with("absent_partitions", json!(absent.unwrap_or_default()))
}

/// The parameters of a similarity query.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SimilarParams {
    limit: usize,
    min_score: f64,
}

impl SimilarParams {
    fn parse(query: Option<&str>) -> Result<SimilarParams, ProblemDetails> {
        let mut params = SimilarParams { limit: 10, min_score: 0.0 };
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    params.limit = limit
                        .ok_or_else(|| ProblemDetails::bad_request("limit must be a number from 1 to 100"))?;
                }
                "min_score" => {
                    let score = value.parse().ok().filter(|score| (0.0..=1.0).contains(score));
                    params.min_score = score.ok_or_else(|| {
                        ProblemDetails::bad_request("min_score must be a number from 0 to 1")
                    })?;
                }
                _ => return Err(ProblemDetails::bad_request("the parameters are limit and min_score")),
            }
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_matches() {
        assert!(token_matches(b"secret", b"secret"));
        for wrong in [&b""[..], b"s", b"secre", b"secret2", b"Secret", b"\0\0\0\0\0\0"] {
            assert!(!token_matches(wrong, b"secret"), "{wrong:?}");
        }
    }

    #[test]
    fn parameters_out_of_bounds_are_refused() {
        assert_eq!(SimilarParams::parse(None).unwrap(), SimilarParams { limit: 10, min_score: 0.0 });
        assert_eq!(
            SimilarParams::parse(Some("min_score=0.5&limit=3")).unwrap(),
            SimilarParams { limit: 3, min_score: 0.5 }
        );
        for wrong in ["limit=0", "limit=101", "limit=x", "min_score=2", "min_score=NaN", "offset=1"] {
            assert!(SimilarParams::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
