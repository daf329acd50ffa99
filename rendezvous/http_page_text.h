#ifndef MUSTER_RENDEZVOUS_HTTP_PAGE_TEXT_H_
#define MUSTER_RENDEZVOUS_HTTP_PAGE_TEXT_H_

namespace muster {

// The page at / (rendezvous/http_pages.h): all of it, nothing is loaded from elsewhere. It asks for
// /api/v1/status each second and shows texts as texts only.
extern const char* const kPageText;

// The Content-Security-Policy that holds it to that.
extern const char* const kPagePolicy;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_HTTP_PAGE_TEXT_H_
