//! Asks the other processes of the stage for partitions that this one does not hold. A forwarded question is
//! never forwarded again, so there is only one hop.
//!
//! A peer that is down or slow costs at most the timeout, and the answer names it. The number of peers, of
//! concurrent requests and of bytes per answer is bounded.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::answer::AnswerBody;
use super::held::HeldPartitions;
use super::question::Question;
use super::resolve::Resolver;
use crate::config::{Http, Secret};

/// Marks a request from a peer, which must not be forwarded again.
pub(super) const FORWARDED: &str = "samestory-forwarded";
/// The largest answer in bytes: a hundred similar articles with their titles take a tenth of it.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Concurrent requests to peers; further ones wait, and the wait counts towards their timeout.
const CONCURRENT_REQUESTS: usize = 256;

/// The other processes of the stage.
pub(super) struct Peers {
    resolver: Arc<Resolver>,
    timeout: Duration,
    token: Option<Arc<Secret>>,
    permits: Arc<Semaphore>,
    /// Peers that did not answer the last request.
    unresponsive: Arc<Mutex<BTreeSet<String>>>,
}

/// The response of one peer.
pub(super) struct PeerReply {
    pub(super) held: HeldPartitions,
    /// None if the peer found nothing.
    pub(super) answer: Option<AnswerBody>,
}

/// The responses of all peers.
#[derive(Default)]
pub(super) struct PeerReplies {
    pub(super) replies: Vec<PeerReply>,
    /// Peers that did not answer.
    pub(super) unanswered: BTreeSet<String>,
}

impl Peers {
    pub(super) fn new(http: &Http) -> Peers {
        Peers {
            resolver: Arc::new(Resolver::new(http.peers.clone())),
            timeout: http.peer_timeout,
            token: http.token.clone().map(Arc::new),
            permits: Arc::new(Semaphore::new(CONCURRENT_REQUESTS)),
            unresponsive: Arc::default(),
        }
    }

    fn unresponsive(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.unresponsive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all peers at once, until `enough` is satisfied or the timeout passes.
    pub(super) async fn ask(
        &self,
        question: &Question,
        mut enough: impl FnMut(&PeerReply) -> bool,
    ) -> PeerReplies {
        let mut gathered = PeerReplies::default();
        let deadline = tokio::time::Instant::now() + self.timeout;
        let (peers, unresolved) = self.resolver.peers(deadline).await;
        gathered.unanswered.extend(unresolved);
        let mut pending: BTreeSet<String> = peers.iter().map(|peer| peer.name.clone()).collect();
        self.unresponsive().retain(|name| pending.contains(name));
        let mut requests = JoinSet::new();
        for peer in peers {
            let (question, token) = (question.clone(), self.token.clone());
            let (permits, unresponsive) = (Arc::clone(&self.permits), Arc::clone(&self.unresponsive));
            requests.spawn(async move {
                let reply = tokio::time::timeout_at(deadline, async {
                    let _permit = permits.acquire().await.map_err(|_| "shutting down")?;
                    exchange(peer.address, &question, token.as_deref()).await
                });
                let reply = reply.await.unwrap_or_else(|_| Err("timed out".into()));
                let mut unresponsive = unresponsive.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = &reply {
                    tracing::debug!(peer = peer.name, %error, "peer did not answer");
                    unresponsive.insert(peer.name.clone());
                } else {
                    unresponsive.remove(&peer.name);
                }
                (peer.name, reply.ok())
            });
        }
        while let Some(joined) = requests.join_next().await {
            let Ok((name, reply)) = joined else { continue };
            pending.remove(&name);
            match reply {
                None => drop(gathered.unanswered.insert(name)),
                Some(reply) => {
                    let enough = enough(&reply);
                    gathered.replies.push(reply);
                    if enough {
                        break;
                    }
                }
            }
        }
        // Let the remaining requests finish in the background, so that `unresponsive` stays up to date.
        let unresponsive = self.unresponsive();
        gathered.unanswered.extend(pending.into_iter().filter(|name| unresponsive.contains(name)));
        requests.detach_all();
        gathered
    }
}

/// Closes a peer connection when its request ends or is cancelled.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type PeerFailure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    address: SocketAddr,
    question: &Question,
    token: Option<&Secret>,
) -> Result<PeerReply, PeerFailure> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = AbortOnDrop(tokio::spawn(connection).abort_handle());
    let (method, path, body) = question.request();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .header(FORWARDED, "1");
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    let response = sender.send_request(request.body(Body::from(body))?).await?;
    let (head, body) = response.into_parts();
    let held = HeldPartitions::read(&head.headers);
    match head.status {
        StatusCode::OK => {
            let body = to_bytes(Body::new(body), MAX_ANSWER_BYTES).await?;
            Ok(PeerReply { held, answer: Some(AnswerBody::read(question, &body)?) })
        }
        StatusCode::NOT_FOUND => Ok(PeerReply { held, answer: None }),
        // The peer runs but cannot answer: busy, a different token, or an unreadable state.
        status => Err(format!("HTTP status {status}").into()),
    }
}
