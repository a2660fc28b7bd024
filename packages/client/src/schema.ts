/* Made of the contract by openapi-typescript: `npm test -- test/published -u` writes it. */
export interface paths {
  "/action-options": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * List what an input can be chosen from
     * @description One page, ordered by name. Nothing is stored, and no credential is answered.
     */
    post: operations["listActionOptions"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/action-providers": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the providers of actions
     * @description With the credentials, inputs and outputs of each of their actions. 304 to who has its `ETag` in `If-None-Match`.
     */
    get: operations["getActionProviders"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/actions": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List actions
     * @description One page, without a cursor: at most 255. Credentials are never read back.
     */
    get: operations["listActions"]
    /**
     * Create an action, or update the one of its name
     * @description What is left out stays as it is.
     */
    put: operations["upsertAction"]
    /**
     * Create an action
     * @description What there is to choose from, and what each takes: `GET /action-providers`. At most 1,000 in a team.
     */
    post: operations["createAction"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/actions/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve an action
     * @description As it is stored.
     */
    get: operations["getAction"]
    put?: never
    post?: never
    /**
     * Delete an action
     * @description Not while a workflow has a step that names it.
     */
    delete: operations["deleteAction"]
    options?: never
    head?: never
    /**
     * Update an action in part
     * @description `inputs` and `credentials` are replaced whole, and what is left out stays. Runs that have begun go on with the inputs that were there; credentials are what they are by then.
     */
    patch: operations["updateAction"]
    trace?: never
  }
  "/actions/{id}/disable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Disable an action
     * @description Steps that name it fail with RESOURCE_DISABLED. Repeating it changes nothing.
     */
    put: operations["disableAction"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/actions/{id}/enable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Enable an action
     * @description Steps that name it call it again. Repeating it changes nothing.
     */
    put: operations["enableAction"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/attempts": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List attempts
     * @description Newest first unless told, with cursors both ways.
     */
    get: operations["listAttempts"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/attempts/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve an attempt
     * @description With what was asked and what was answered.
     */
    get: operations["getAttempt"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/auth/demo/login": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Begin a demo session
     * @description As the demo user, who owns the demo team; for 24 hours. It can be switched off.
     */
    post: operations["loginDemo"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/auth/idp/login": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Begin a session with an ID token
     * @description Its issuer, audience, signature and times are checked, and the nonce where one is given. The session ends after 7 days.
     */
    post: operations["login"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/auth/logout": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * End the session
     * @description Its token is no longer valid anywhere.
     */
    post: operations["logout"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/auth/me": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Tell who is calling
     * @description The user, their session and the teams that they are members of; of an API key, its team.
     */
    get: operations["getMe"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    /**
     * Change one's name
     * @description Not of the demo user, whom everybody may be.
     */
    patch: operations["updateMe"]
    trace?: never
  }
  "/bins/{id}/stream": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Watch a bin or a source
     * @description A WebSocket. Each of its text frames is one StreamFrame: a hello, and from then on every request that is stored. Who asks is told by the headers of any call (`Authorization`, `x-team-id`, `x-bin-token`) or, in a browser, by subprotocols: `token.<base64url>` (a bin's token, an API key or a session's token), `team.<base64url>` (the team, or a credential of it), and `bin.v1`, which is answered. Who may not is let in and then told so by the close code: 4401, 4403, 4404, or 4410 when the bin is over; 1012 and 1013 say to come again.
     */
    get: operations["watchBin"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connect": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Hold a tunnel open
     * @description A WebSocket. Each of the gateway's text frames is one TunnelFrame: a hello, and from then on every delivery of the CLI destination, each of which the client answers with a frame of its own: `docs/tunnel.md` has them all. Who asks is told by the headers of any call (`Authorization`, `x-team-id`), by `x-api-key`, or by subprotocols as a stream is. Who may not is let in and then told so by the close code: 4401, 4403, 4404; 4409 when a newer session has taken over.
     */
    get: operations["connectTunnel"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List connections
     * @description One page, without a cursor: at most 255.
     */
    get: operations["listConnections"]
    /**
     * Create or update a connection, by its id or by its source and name
     * @description The connection that is selected is updated in part; when there is none, it is created.
     */
    put: operations["upsertConnection"]
    /**
     * Create a connection
     * @description From then on, every request that its source accepts is routed by its rules.
     */
    post: operations["createConnection"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a connection
     * @description With its source and its destination in full.
     */
    get: operations["getConnection"]
    put?: never
    post?: never
    /**
     * Delete a connection
     * @description What waits on it is cancelled.
     */
    delete: operations["deleteConnection"]
    options?: never
    head?: never
    /**
     * Update a connection in part
     * @description What is given is merged into the connection; `rules` are replaced whole.
     */
    patch: operations["updateConnection"]
    trace?: never
  }
  "/connections/{id}/disable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Stop routing over a connection
     * @description What waits on it is cancelled, and later requests make no event. Repeating it changes nothing.
     */
    put: operations["disableConnection"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections/{id}/enable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Route over a connection again
     * @description Repeating it changes nothing.
     */
    put: operations["enableConnection"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections/{id}/latest-input": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * The latest request its source accepted
     * @description To try a filter or a transformation on; null when there is none.
     */
    get: operations["getLatestInput"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections/{id}/pause": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Hold what a connection delivers
     * @description Its events wait in HOLD until it is unpaused. Repeating it changes nothing.
     */
    put: operations["pauseConnection"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/connections/{id}/unpause": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Deliver what was held
     * @description Held events are queued again. Repeating it changes nothing.
     */
    put: operations["unpauseConnection"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/destinations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List destinations
     * @description One page, without a cursor: at most 255, each with its attempts of the last 24 hours.
     */
    get: operations["listDestinations"]
    /**
     * Create a destination, or update the one of its name
     * @description What is left out stays as it is; secrets may be given masked.
     */
    put: operations["upsertDestination"]
    /**
     * Create a destination
     * @description Where the URL leads is checked with every delivery; private networks are refused unless allowed.
     */
    post: operations["createDestination"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/destinations/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a destination
     * @description Secrets are masked.
     */
    get: operations["getDestination"]
    /**
     * Replace a destination
     * @description What is left out has its default; secrets may be given masked.
     */
    put: operations["replaceDestination"]
    post?: never
    /**
     * Delete a destination and its connections
     * @description What waits for it is cancelled.
     */
    delete: operations["deleteDestination"]
    options?: never
    head?: never
    /**
     * Update a destination in part
     * @description What is given is merged into the destination; `auth` is replaced whole.
     */
    patch: operations["updateDestination"]
    trace?: never
  }
  "/destinations/{id}/disable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Disable a destination
     * @description What waits for it is cancelled, and its connections route nothing to it. Repeating it changes nothing.
     */
    put: operations["disableDestination"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/destinations/{id}/enable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Enable a destination
     * @description Its connections route to it again. Repeating it changes nothing.
     */
    put: operations["enableDestination"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/destinations/{id}/oauth/start": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Send somebody to consent to a destination's tokens
     * @description For `OAUTH2_AUTHORIZATION_CODE` with an `authorization_url`. What is begun is good for ten minutes and for once; beginning again takes its place.
     */
    post: operations["startDestinationConsent"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List events, newest first
     * @description Of the last 24 hours unless told; pages by cursor. A page may be shorter than its limit. With `after` it is a feed: the events that were stored behind it, in that order, each once; begin with `after=now`, go on with `next_cursor`.
     */
    get: operations["listEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve an event with what is sent and the last answer
     * @description `data` is null when retention took it.
     */
    get: operations["getEvent"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/{id}/retry": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Deliver a finished event again
     * @description As a new event, with the same payload. It has to be SUCCESSFUL, FAILED or CANCELLED.
     */
    post: operations["retryEvent"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/bulk_operations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List bulk operations of events, newest first
     * @description One page, without a cursor.
     */
    get: operations["listEventBulkOperations"]
    put?: never
    /**
     * Retry all events that a filter finds, or cancel those that wait
     * @description What it finds is written down first (PLANNED), then carried out (RUNNING) at a pace that live traffic does not notice. With `confirm` false it waits, with its total_count and a sample, until it is told to run, for a day. Without any condition it needs `all`. At most 50 at a time.
     */
    post: operations["createEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/bulk_operations/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a bulk operation
     * @description With how far it has come.
     */
    get: operations["getEventBulkOperation"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/bulk_operations/{id}/cancel": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Cancel a bulk operation
     * @description What it has queued is delivered all the same.
     */
    post: operations["cancelEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/bulk_operations/{id}/run": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Confirm a bulk operation
     * @description A plan begins, at once or when it is made. Again it changes nothing.
     */
    post: operations["runEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/events/count": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Count events
     * @description Of the last 24 hours unless told.
     */
    get: operations["countEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/filters": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List filters
     * @description By name. One page, without a cursor: at most 255.
     */
    get: operations["listFilters"]
    /**
     * Create a filter, or update the one of its name
     * @description What is left out stays as it is.
     */
    put: operations["upsertFilter"]
    /**
     * Create a filter
     * @description A rule `{"type": "filter", "filter_id": …}` of a connection links it. At most 500 in a team.
     */
    post: operations["createFilter"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/filters/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a filter
     * @description With the connections that link it.
     */
    get: operations["getFilter"]
    put?: never
    post?: never
    /**
     * Delete a filter
     * @description Rules that link it keep its conditions, and say in `detached_from_filter` whose they were.
     */
    delete: operations["deleteFilter"]
    options?: never
    head?: never
    /**
     * Update a filter in part
     * @description Every connection that links it goes by the new conditions, from the first request after the answer.
     */
    patch: operations["updateFilter"]
    trace?: never
  }
  "/filters/test": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Try conditions, or a stored filter, on a request
     * @description Nothing is stored. The answer says of each operator whether it matched. At most 256 KiB.
     */
    post: operations["testFilter"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List ignored events, newest first
     * @description Of the last 24 hours unless told; pages by cursor. A page may be shorter than its limit.
     */
    get: operations["listAllIgnoredEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events/bulk_operations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List bulk operations of ignored events, newest first
     * @description One page, without a cursor.
     */
    get: operations["listIgnoredEventBulkOperations"]
    put?: never
    /**
     * Replay the requests of all ignored events that a filter finds, each to the connection that ignored it
     * @description What it finds is written down first (PLANNED), then carried out (RUNNING) at a pace that live traffic does not notice. With `confirm` false it waits, with its total_count and a sample, until it is told to run, for a day. Without any condition it needs `all`. At most 50 at a time.
     */
    post: operations["createIgnoredEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events/bulk_operations/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a bulk operation
     * @description With how far it has come.
     */
    get: operations["getIgnoredEventBulkOperation"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events/bulk_operations/{id}/cancel": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Cancel a bulk operation
     * @description What it has queued is delivered all the same.
     */
    post: operations["cancelIgnoredEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events/bulk_operations/{id}/run": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Confirm a bulk operation
     * @description A plan begins, at once or when it is made. Again it changes nothing.
     */
    post: operations["runIgnoredEventBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/ignored_events/count": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Count ignored events
     * @description Of the last 24 hours unless told.
     */
    get: operations["countIgnoredEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/connections": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Summarize connections
     * @description Of the last 24 hours, a row for each id in the order given; zeros for an id that is none. Bins are six of four hours, the oldest first.
     */
    get: operations["getConnectionMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/destinations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Summarize destinations
     * @description Of the last 24 hours, a row for each id in the order given; zeros for an id that is none. Bins are six of four hours, the oldest first.
     */
    get: operations["getDestinationMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/events": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Count events over time, by the status that they have now
     * @description Buckets from date_range.start to date_range.end in UTC, those without anything included: the range is widened to whole buckets. Without a granularity it is the finest with at most 300 of them. processing_count is what is being delivered: of destinations with a rate all of it, of others what takes longer than a second or two. Ignored events have no destination, status or bulk operation. partial: more wait than are read, so queued_count, processing_count and hold_count are at least what they say.
     */
    get: operations["getEventMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/requests": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Count requests over time
     * @description Buckets from date_range.start to date_range.end in UTC, those without anything included: the range is widened to whole buckets. Without a granularity it is the finest with at most 300 of them.
     */
    get: operations["getRequestMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/sources": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Summarize sources
     * @description Of the last 24 hours, a row for each id in the order given; zeros for an id that is none. Bins are six of four hours, the oldest first.
     */
    get: operations["getSourceMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/transformations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Summarize transformations
     * @description Of the last 24 hours, a row for each id in the order given; zeros for an id that is none. Bins are six of four hours, the oldest first.
     */
    get: operations["getTransformationMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/metrics/workflows": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Summarize workflows
     * @description Of the runs of the last 24 hours, a row for each id in the order given; zeros for an id that is none.
     */
    get: operations["getWorkflowMetrics"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/oauth/callback": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Show whom a consent is for
     * @description Where a provider leads somebody back to who has consented. Without a credential: the state is one. The answer is a page that shows whom the consent is for, whoever asks; nothing is done with it before somebody says yes there. With `error` in the place of `code` the consent has ended.
     */
    get: operations["showDestinationConsent"]
    put?: never
    /**
     * End a consent
     * @description What the page of `GET /oauth/callback` sends when somebody says yes there. `confirmed` is signed, for this state and this code, and is good for ten minutes and for once; without it the page is shown again. The tokens are kept with the destination and are shown to nobody. A browser (`accept: text/html`) is answered with a page.
     */
    post: operations["endDestinationConsent"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/project-api-keys": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List keys
     * @description At most 100: those that are not revoked, newest first, then of the others the newest.
     */
    get: operations["listProjectKeys"]
    put?: never
    /**
     * Create a key
     * @description The key itself is in this answer and nowhere else: if it is lost, revoke it and make another. A team has at most 50 that are not revoked.
     */
    post: operations["createProjectKey"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/project-api-keys/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a key
     * @description Never what it is recognised by.
     */
    get: operations["getProjectKey"]
    put?: never
    post?: never
    /**
     * Revoke a key
     * @description For ever, from the next call on, everywhere. Repeating it changes nothing.
     */
    delete: operations["revokeProjectKey"]
    options?: never
    head?: never
    /**
     * Change a key
     * @description What is left out stays. Taking control:execute from a key that has grants needs `execute_grants: []` beside it. It holds from the next call on, everywhere.
     */
    patch: operations["updateProjectKey"]
    trace?: never
  }
  "/project-api-keys/{id}/audit": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List what was decided about a key
     * @description At most 100, the latest first, of the last 30 days. Decisions of one kind within five minutes are one; they are there a second later.
     */
    get: operations["listKeyDecisions"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/project-api-keys/{id}/revoke": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/project-secrets": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve what may be known of the secrets
     * @description Never their values.
     */
    get: operations["getProjectSecrets"]
    /**
     * Replace the secrets by values of one's own
     * @description What is left out stays.
     */
    put: operations["replaceProjectSecrets"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/project-secrets/rotate": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Replace the secrets by random values
     * @description They are shown in this answer and never again. No body replaces both. The former API key is dead at once; deliveries are signed by the former signing secret too, for 24 hours.
     */
    post: operations["rotateProjectSecrets"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/public-bins": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Make a bin
     * @description Without a credential and without a body: a URL that takes requests for an hour, and the token to read them by. At most 10 an hour from one address.
     */
    post: operations["createPublicBin"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/public-bins/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a bin and what it has received
     * @description Newest first. The bin's token goes in `x-bin-token`, or as `Authorization: Bearer <token>`. Bodies beyond 64 KiB are left out: a claimed bin's are read like any request's. At most 120 a minute from one address.
     */
    get: operations["getPublicBin"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/public-bins/{id}/claim": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Make a bin a source of the team
     * @description It keeps its URL and what it has received, and ends no more. It needs the bin's token in `x-bin-token`, which is worth nothing afterwards.
     */
    post: operations["claimPublicBin"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/request-fixtures": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List fixtures, newest first
     * @description One page, without a cursor: at most 255.
     */
    get: operations["listFixtures"]
    put?: never
    /**
     * Keep a request as a fixture
     * @description A copy of what was received, which outlives the request.
     */
    post: operations["createFixture"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/request-fixtures/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a fixture with its snapshot
     * @description What was received, as it was.
     */
    get: operations["getFixture"]
    put?: never
    post?: never
    /**
     * Delete a fixture
     * @description The request that it is a copy of stays.
     */
    delete: operations["deleteFixture"]
    options?: never
    head?: never
    /**
     * Rename or describe a fixture
     * @description What is left out stays; the snapshot never changes.
     */
    patch: operations["updateFixture"]
    trace?: never
  }
  "/request-fixtures/{id}/replay": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Replay a fixture through one connection
     * @description As a new request, which only that connection sees. Its rules hold, but for deduplication.
     */
    post: operations["replayFixture"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/request-fixtures/{id}/targets": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the connections that a fixture can be replayed through
     * @description The enabled ones of its source, with enabled destinations.
     */
    get: operations["listFixtureTargets"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List requests, newest first
     * @description Of the last 24 hours unless told; pages by cursor. A page may be shorter than its limit.
     */
    get: operations["listRequests"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a request with what was received
     * @description `data` is null when retention took it. A proxy source's request has its `proxy_exchange`.
     */
    get: operations["getRequest"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/body": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Download the body of a request
     * @description The bytes as they were received, as an attachment that no browser shows; 404 when none are stored (any more). The type they came with is `data.content_type` of the request.
     */
    get: operations["downloadRequestBody"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/events": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the events of a request
     * @description Oldest first.
     */
    get: operations["listRequestEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/ignored_events": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List what a request did not become, and why
     * @description One for each connection whose rules kept it from becoming an event.
     */
    get: operations["listIgnoredEvents"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/retry": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Replay a request, as it was or with edits
     * @description As a new request of the source, rejected ones too. It is not verified, goes through the rules that the source's connections have now, and is never a duplicate. No body is an exact replay.
     */
    post: operations["retryRequest"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/share": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Share a request
     * @description A link that anybody may open until it ends: after 7 days unless told, 30 at most. What is secret is taken out before it is stored; the link is told once. A body of bytes, and JSON beyond 128 KiB, is left out.
     */
    post: operations["shareRequest"]
    /**
     * End all shares of a request
     * @description Their links answer 410 from then on; `revoked` says how many had not been revoked before. Repeating it changes nothing. Also when retention has taken the request.
     */
    delete: operations["revokeShares"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/share/{share}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * End a share
     * @description Its link answers 410 from then on. Repeating it changes nothing.
     */
    delete: operations["revokeShare"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/{id}/trace": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a request with everything that became of it
     * @description Its events with their attempts, what was ignored and why, connections that were off, the runs of workflows that it began, and a timeline of it all; where there is no event, why.
     */
    get: operations["getTrace"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/bulk_operations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List bulk operations of requests, newest first
     * @description One page, without a cursor.
     */
    get: operations["listRequestBulkOperations"]
    put?: never
    /**
     * Replay all requests that a filter finds
     * @description What it finds is written down first (PLANNED), then carried out (RUNNING) at a pace that live traffic does not notice. With `confirm` false it waits, with its total_count and a sample, until it is told to run, for a day. Without any condition it needs `all`. At most 50 at a time.
     */
    post: operations["createRequestBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/bulk_operations/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a bulk operation
     * @description With how far it has come.
     */
    get: operations["getRequestBulkOperation"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/bulk_operations/{id}/cancel": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Cancel a bulk operation
     * @description What it has queued is delivered all the same.
     */
    post: operations["cancelRequestBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/bulk_operations/{id}/run": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Confirm a bulk operation
     * @description A plan begins, at once or when it is made. Again it changes nothing.
     */
    post: operations["runRequestBulkOperation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/requests/count": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Count requests
     * @description Of the last 24 hours unless told.
     */
    get: operations["countRequests"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/shares": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the shares of the team, newest first
     * @description Without their links and without what they show. Those that have ended are listed for 7 days more.
     */
    get: operations["listShares"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/shares/request/{token}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Open a share
     * @description Without a credential: the link is one. At most 120 a minute from one address.
     */
    get: operations["openShare"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/sources": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List sources
     * @description One page, without a cursor: at most 255.
     */
    get: operations["listSources"]
    /**
     * Create or update a source by its name
     * @description The source of this name is updated in part; when there is none, it is created.
     */
    put: operations["upsertSource"]
    /**
     * Create a source
     * @description Its `url` is what senders post to. Without `auth` it accepts everybody.
     */
    post: operations["createSource"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/sources/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a source
     * @description Secrets are masked.
     */
    get: operations["getSource"]
    put?: never
    post?: never
    /**
     * Delete a source and its connections
     * @description Its URL answers 404 from then on. Its requests and events are kept until retention takes them.
     */
    delete: operations["deleteSource"]
    options?: never
    head?: never
    /**
     * Update a source in part
     * @description What is given is merged into the source; `auth`, `custom_response` and `proxy` are replaced whole.
     */
    patch: operations["updateSource"]
    trace?: never
  }
  "/sources/{id}/disable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Disable a source and its connections
     * @description Requests to it are answered 403 and stored as rejected; what waits on its connections is cancelled. Repeating it changes nothing.
     */
    put: operations["disableSource"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/sources/{id}/enable": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Enable a source
     * @description With it, the connections that were disabled by disabling it. Repeating it changes nothing.
     */
    put: operations["enableSource"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/sources/{id}/health": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Tell how a source is doing
     * @description What became of its requests in the last 24 hours, and where its ingest limit stands. What was limited is counted, not stored.
     */
    get: operations["getSourceHealth"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/team": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve the team
     * @description The team that the call acts on.
     */
    get: operations["getTeam"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    /**
     * Change the team's name, or for how long its data is kept
     * @description What is left out stays. A team keeps its data at most as long as the operator's settings say.
     */
    patch: operations["updateTeam"]
    trace?: never
  }
  "/team/members": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the members of the team
     * @description Owners first. A team has at most 1,000.
     */
    get: operations["listTeamMembers"]
    put?: never
    /**
     * Add somebody to the team
     * @description Whoever is not known yet is let in when they sign in with that address, verified by the issuer. Of a member already, it changes the role.
     */
    post: operations["addTeamMember"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/team/members/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * Remove a member from the team
     * @description They cannot act on it from their next call on. The team keeps an owner.
     */
    delete: operations["removeTeamMember"]
    options?: never
    head?: never
    /**
     * Change what a member is to the team
     * @description It holds from their next call on. The team keeps an owner.
     */
    patch: operations["updateTeamMember"]
    trace?: never
  }
  "/teams": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List one's teams
     * @description The teams that the user is a member of, by name; of an API key, its team. At most 1,000.
     */
    get: operations["listTeams"]
    put?: never
    /**
     * Create a team
     * @description With its first owner. Site admins alone may, who are named by the operator.
     */
    post: operations["createTeam"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List transformations
     * @description One page, without a cursor: at most 255.
     */
    get: operations["listTransformations"]
    /**
     * Create a transformation, or update the one of its name
     * @description Variables that are left out stay as they are; so do its id, and the rules that name it.
     */
    put: operations["upsertTransformation"]
    /**
     * Create a transformation
     * @description Connections use it by a rule of type `transform`.
     */
    post: operations["createTransformation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a transformation
     * @description With its code, and what it did in the last 24 hours.
     */
    get: operations["getTransformation"]
    put?: never
    post?: never
    /**
     * Delete a transformation that no connection uses
     * @description Its name is free again; its executions are kept until retention takes them.
     */
    delete: operations["deleteTransformation"]
    options?: never
    head?: never
    /**
     * Update a transformation in part
     * @description What is given replaces what is there, `env` as a whole. Requests that wait for it get the new code.
     */
    patch: operations["updateTransformation"]
    trace?: never
  }
  "/transformations/{id}/executions": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List what a transformation ran for, newest first
     * @description Of the last 24 hours unless told; pages by cursor.
     */
    get: operations["listExecutions"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations/{id}/executions/{executionId}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve an execution
     * @description With what the code was given and what it made of it; null when retention took it, or the code failed.
     */
    get: operations["getExecution"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations/capabilities": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * What code may use
     * @description The runtime, what code finds beside the language, and the limits of a call.
     */
    get: operations["getTransformationCapabilities"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations/run": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Run a transformation, or code, against a sample
     * @description Nothing is stored. Code that fails is answered 200 with `error`; code that does not compile 400.
     */
    post: operations["runTransformation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/transformations/validate": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Whether code is a transformation
     * @description The code is compiled and loaded, and no request is run through it. What is wrong is answered 200, with `valid` false and `error`.
     */
    put: operations["validateTransformation"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-activity": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the runs of all workflows, newest first
     * @description With their steps; of the last 24 hours unless told. One page, without a cursor: narrow the window for what is beyond it.
     */
    get: operations["listWorkflowActivity"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-formatter/catalog": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve the operations of the formatter
     * @description With their fields, limits and outputs. `ETag` is its `catalog_hash`; 304 to who has it in `If-None-Match`.
     */
    get: operations["getFormatterCatalog"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-formatter/test": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Try an operation of the formatter
     * @description Nothing is stored. The same body gives the same answer, but for `duration_ms`, as long as `anchor_at` is given. At most 256 KiB.
     */
    post: operations["testFormatter"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-templates": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the templates of workflows
     * @description They come with the gateway, and need nothing but what it has.
     */
    get: operations["listWorkflowTemplates"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-templates/{key}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a template of workflows
     * @description What it does, what it has to be given, and the steps and edges that are made of it.
     */
    get: operations["getWorkflowTemplate"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflow-templates/{key}/instantiate": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Make a workflow of a template
     * @description It is a draft: its source starts no run until its status is `active`. From then on it has nothing to do with the template.
     */
    post: operations["instantiateWorkflowTemplate"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List workflows
     * @description Without steps and edges; the latest change first. One page, without a cursor: at most 255.
     */
    get: operations["listWorkflows"]
    /**
     * Create a workflow, or update the one of its name
     * @description What is left out stays as it is.
     */
    put: operations["upsertWorkflow"]
    /**
     * Create a workflow
     * @description All that is wrong with its graph is answered at once. Members that a step's output does not have are taken, with `warnings`. At most 1,000 in a team.
     */
    post: operations["createWorkflow"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/{id}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a workflow
     * @description With its steps and edges, and whether it can run.
     */
    get: operations["getWorkflow"]
    put?: never
    post?: never
    /**
     * Delete a workflow
     * @description With its runs; those under way begin no further step. Its source stays.
     */
    delete: operations["deleteWorkflow"]
    options?: never
    head?: never
    /**
     * Update a workflow in part
     * @description Steps, or edges, that are given replace all that were there. A change makes a new version; runs that have begun end by theirs. Without a change the version stays.
     */
    patch: operations["updateWorkflow"]
    trace?: never
  }
  "/workflows/{id}/runs": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List the runs of a workflow, newest first
     * @description With how many of their steps have come to what; pages by cursor.
     */
    get: operations["listWorkflowRuns"]
    put?: never
    post?: never
    /**
     * Clear the history of a workflow
     * @description Removes runs that are at their end, with what is kept of their steps; those that are not stay. Repeat it while has_more. What was counted stays counted.
     */
    delete: operations["clearWorkflowRuns"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/{id}/runs/{runId}": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Retrieve a run of a workflow
     * @description With the version that ran, what began it, and its steps in the order in which they ran. Payloads are shown when they are asked for, without secrets.
     */
    get: operations["getWorkflowRun"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/{id}/runs/{runId}/retry": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Run a failed step of a run again
     * @description The run goes on by the version that it ran by: what succeeded stays, and the step runs again with all that follows from it.
     */
    post: operations["retryWorkflowStep"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/{id}/test": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Try a workflow on a request
     * @description The engine of real runs carries it out; nothing is stored, and no list has it. A step that is an action or a destination is not called unless the mode is live: its mock, or a sample, stands in for it. Delays take no time. At most 60 seconds.
     */
    post: operations["testWorkflow"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/aggregate": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Save a workflow and its source at once
     * @description All of it is written, or nothing. A source is made, or named by `source_id`; with `workflow_id` that workflow is changed, otherwise one is made.
     */
    put: operations["saveWorkflowAggregate"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/workflows/test": {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Try a graph that is not stored on a request
     * @description The engine of real runs carries it out; nothing is stored, and no list has it. A step that is an action or a destination is not called unless the mode is live: its mock, or a sample, stands in for it. Delays take no time. At most 60 seconds.
     */
    post: operations["testUnsavedWorkflow"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
}
export type webhooks = Record<string, never>
export interface components {
  schemas: {
    Action: {
      action_key: string
      config: components["schemas"]["ActionConfig"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      disabled_at: string | null
      held_until: string | null
      id: string
      name: string
      provider_key: string
      /** @enum {string} */
      status: "enabled" | "disabled"
      team_id: string
      /** @enum {string} */
      type: "ACTION"
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      workflow_steps_count: number
    }
    ActionChoice: {
      description: string | null
      id: string
      name: string
    }
    ActionChoices: {
      models: components["schemas"]["ActionChoice"][]
      next_cursor: string | null
    }
    ActionConfig: {
      auth_mode: string
      credentials_configured: boolean
      inputs: Record<string, unknown>
      provider_account_id: null
      rate_limit: number | null
      /** @enum {string} */
      rate_limit_period: "second" | "minute" | "hour" | "day"
      /** @enum {string} */
      schema_provenance: "catalog"
      schema_version: string
    }
    ActionCredentialField: {
      help: string | null
      key: string
      label: string
      /** @description The auth_mode that it is of */
      modes: string[]
      placeholder: string | null
      required: boolean
      /** @enum {string} */
      type: "secret" | "text"
    }
    ActionOptionsInput: {
      action_id?: string | null
      auth_mode?: string | null
      credentials?: Record<string, unknown> | null
      cursor?: string | null
      dependencies?: Record<string, unknown> | null
      limit?: number | null
      provider_account_id?: string | null
      provider_key: string
      query?: string | null
      /** @description What is chosen from: see the guide */
      resource: string
    }
    ActionPatch: {
      action_key?: string
      auth_mode?: string | null
      config?: {
        auth_mode?: string | null
        credentials?: Record<string, unknown> | null
        inputs?: Record<string, unknown> | null
        provider_account_id?: string | null
        rate_limit?: number | null
        rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      }
      credentials?: Record<string, unknown> | null
      inputs?: Record<string, unknown> | null
      /** @description Printable characters, unique in the team */
      name?: string
      provider_account_id?: string | null
      provider_key?: string
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      /** @enum {string} */
      status?: "enabled" | "disabled"
    }
    ActionProvider: {
      actions: components["schemas"]["CatalogAction"][]
      auth: components["schemas"]["ActionProviderAuth"]
      capabilities: string[]
      config_version: number
      description: string
      icon_key: string
      key: string
      manifest_version: string
      name: string
    }
    ActionProviderAuth: {
      /** @enum {string} */
      connection_type: "none" | "api_key"
      credential_fields: components["schemas"]["ActionCredentialField"][]
      modes: string[]
      provider_key: string
      /** @enum {string} */
      type: "none" | "api_key"
    }
    ActionProviders: {
      count: number
      models: components["schemas"]["ActionProvider"][]
    }
    /**
     * @description Calls an action: a saved one by resource_id (act_…), or one that is written into the step.
     * @example {
     *       "id": "fmt_name",
     *       "kind": "action",
     *       "name": "Title case",
     *       "action": {
     *         "provider_key": "formatter",
     *         "action_key": "text.titlecase",
     *         "version": "1.0.0"
     *       },
     *       "invocation_inputs": {
     *         "input": "{{trigger.body.customer.name}}"
     *       },
     *       "config": {
     *         "formatter": {
     *           "options": {
     *             "style": "english"
     *           }
     *         }
     *       }
     *     }
     */
    ActionStep: {
      action?: components["schemas"]["InlineAction"] | null
      action_revision_id?: string | null
      config?: components["schemas"]["ActionStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "action"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id?: string | null
    }
    ActionStepConfig: {
      for_each?: string
      formatter?: {
        engine_version?: string
        options?: {
          [key: string]: unknown
        }
      }
      note?: string
      /** @enum {string} */
      on_error?: "fail" | "continue" | "branch"
      retry?: {
        /** @description Retries after the first attempt; 5 unless told */
        count?: number
        error_codes?: string[]
        /** @description Milliseconds to the first retry; 60000 unless told */
        interval?: number
        /** @enum {string} */
        jitter?: "none" | "full"
        /** @description Milliseconds that a wait is long at the most; a day unless told */
        max_interval?: number
        response_status_codes?: (string | number)[]
        /** @enum {string} */
        strategy?: "linear" | "exponential"
      } | null
      /** @description Milliseconds that an attempt may take; 30000 unless told */
      timeout_ms?: number
    }
    /**
     * @example {
     *       "name": "Post to ledger",
     *       "provider_key": "http",
     *       "action_key": "request",
     *       "auth_mode": "bearer",
     *       "credentials": {
     *         "token": "a-token-of-the-ledger"
     *       },
     *       "inputs": {
     *         "method": "POST",
     *         "url": "https://ledger.example.com/entries"
     *       },
     *       "rate_limit": 5
     *     }
     */
    ActionWrite: {
      action_key: string
      auth_mode?: string | null
      config?: {
        auth_mode?: string | null
        credentials?: Record<string, unknown> | null
        inputs?: Record<string, unknown> | null
        provider_account_id?: string | null
        rate_limit?: number | null
        rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      }
      credentials?: Record<string, unknown> | null
      inputs?: Record<string, unknown> | null
      /** @description Printable characters, unique in the team */
      name: string
      provider_account_id?: string | null
      provider_key: string
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      /** @enum {string} */
      status?: "enabled" | "disabled"
    }
    ApiKeyAuth: {
      /** @description What the sender presents. Encrypted at rest, masked on read; writing the mask back keeps it */
      api_key: string
      header_key?: string | null
      query_key?: string | null
    }
    ApiKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ApiKeyAuth"]
      /** @enum {string} */
      auth_type: "API_KEY"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ApiKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ApiKeyAuth"]
      /** @enum {string} */
      auth_type: "API_KEY"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    Attempt: {
      attempt_number: number
      body: string | null
      /** @enum {string} */
      body_encoding: "text" | "base64"
      bulk_retry_id: string | null
      connection_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      delivered_at: string
      delivery_latency: number
      destination_id: string
      error_code: string | null
      event_id: string
      http_method: string
      id: string
      request_id: string
      requested_url: string
      responded_at: string | null
      response_headers: {
        [key: string]: string | string[]
      } | null
      response_latency: number | null
      response_status: number | null
      source_id: string
      /** @enum {string} */
      status: "SUCCESSFUL" | "FAILED"
      successful_at: string | null
      team_id: string
      /** @enum {string} */
      trigger: "INITIAL" | "AUTOMATIC" | "MANUAL" | "BULK_RETRY" | "UNPAUSE"
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      webhook_id: string
    }
    BasicAuth: {
      /** @description What the sender presents. Encrypted at rest, masked on read; writing the mask back keeps it */
      password: string
      username: string
    }
    BasicAuthSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["BasicAuth"]
      /** @enum {string} */
      auth_type: "BASIC_AUTH"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    BasicAuthSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["BasicAuth"]
      /** @enum {string} */
      auth_type: "BASIC_AUTH"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /**
     * @description Goes on by the paths that match: an edge names one by the port path_<key>. `paths` is another name of the kind.
     * @example {
     *       "id": "by_region",
     *       "kind": "branch",
     *       "name": "Region",
     *       "config": {
     *         "evaluation": "first",
     *         "paths": [
     *           {
     *             "key": "eu",
     *             "name": "EU",
     *             "rule": "conditions",
     *             "conditions": {
     *               "trigger": {
     *                 "body": {
     *                   "country": {
     *                     "$in": [
     *                       "DE",
     *                       "FR"
     *                     ]
     *                   }
     *                 }
     *               }
     *             }
     *           },
     *           {
     *             "key": "rest",
     *             "name": "Elsewhere",
     *             "rule": "fallback"
     *           }
     *         ]
     *       }
     *     }
     */
    BranchStep: {
      action?: string | null
      action_revision_id?: string | null
      config: components["schemas"]["BranchStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "branch" | "paths"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id?: string | null
    }
    BranchStepConfig: {
      /** @enum {string} */
      evaluation?: "all" | "first"
      note?: string
      paths: {
        conditions?: unknown
        key: string
        name?: string
        /** @enum {string} */
        rule: "conditions" | "always" | "fallback"
      }[]
    }
    BulkFilter: {
      batch_operation_id?: string
      batch_operation_scope?: string
      cause?: string[]
      connection_id?: string[]
      destination_id?: string[]
      error_code?: string[]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      from: string
      is_retry?: boolean
      q?: string
      rejection_cause?: string[]
      request_id?: string[]
      resolved?: boolean
      response_status?: string[]
      retry_kind?: string
      source_id?: string[]
      status?: string[]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      to: string
      verified?: boolean
    }
    BulkOperation: {
      cancelable: boolean
      /** @description false: it is a plan, which begins when it is told to run */
      confirmed: boolean
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      done_count: number
      /** @description Why it was not gone on with; null: it was. PROCESS_ENDED: processes ended with it again and again; what it has not carried out is as it was */
      error: {
        code: string
        message: string
      } | null
      failed_count: number
      filter: components["schemas"]["BulkFilter"]
      finished_at: string | null
      id: string
      /** @description When all had been found */
      planned_at: string | null
      queued_count: number
      /** @description Targets a second at the most; null: what live traffic leaves */
      rate: number | null
      requested_by: string | null
      /** @description Ids of some that the plan has found, the newest first */
      sample: string[]
      started_at: string | null
      /** @enum {string} */
      status: "PLANNED" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED"
      team_id: string
      total_count: number
      /** @enum {string} */
      type: "request_bulk_retry" | "event_bulk_retry" | "event_bulk_cancel" | "ignored_event_bulk_retry"
    }
    CapturedRequest: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      data: components["schemas"]["RequestData"] | null
      id: string
      /** @enum {string} */
      status: "accepted" | "rejected"
    }
    CatalogAction: {
      auth_modes: string[]
      category: string
      default_auth_mode: string
      description: string
      input_sample: Record<string, unknown>
      /** @description JSON Schema */
      input_schema: Record<string, unknown>
      key: string
      name: string
      output_sample: Record<string, unknown>
      /** @description JSON Schema */
      output_schema: Record<string, unknown>
      primary_output: string | null
      provider_key: string
      rate_limit: {
        period: string
        requests: number
      } | null
      required_oauth_scopes: string[]
      required_permissions: string[]
      /**
       * @description `local`: it stays within the gateway
       * @enum {string}
       */
      transport: "api" | "local"
      version: string
    }
    ChatBotDestinationConfig: {
      auth:
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The token of a bot
       * @enum {string}
       */
      auth_type: "CHAT_BOT_TOKEN"
      blocks_template?: string | null
      channel: string
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      text_template: string
    }
    /**
     * @description Posts to a channel as a bot (Slack).
     * @example {
     *       "name": "ops-channel",
     *       "type": "CHAT_BOT",
     *       "config": {
     *         "channel": "C0123456789",
     *         "text_template": "Order {{payload.id}} has arrived",
     *         "auth_type": "CHAT_BOT_TOKEN",
     *         "auth": {
     *           "bot_token": "xoxb-0000-0000"
     *         }
     *       }
     *     }
     */
    ChatBotDestinationWrite: {
      config: components["schemas"]["ChatBotDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "CHAT_BOT"
    }
    ChatWebhookDestinationConfig: {
      allowed_mentions?: ("roles" | "users" | "everyone")[] | null
      auth?: {
        /** @description true: as if there were no auth */
        disabled?: boolean
      } | null
      auth_type?: "NO_AUTH" | null
      avatar_url?: string | null
      content_template?: string | null
      embeds?: string | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      /**
       * Format: uri
       * @description The webhook's execute URL. Encrypted at rest, masked on read; writing the mask back keeps it
       * @example https://discord.com/api/webhooks/1234/token
       */
      url: string
      username?: string | null
    }
    /**
     * @description Posts to a channel through its webhook (Discord).
     * @example {
     *       "name": "alerts-channel",
     *       "type": "CHAT_WEBHOOK",
     *       "config": {
     *         "url": "https://discord.com/api/webhooks/1234/token",
     *         "content_template": "{{payload.message}}"
     *       }
     *     }
     */
    ChatWebhookDestinationWrite: {
      config: components["schemas"]["ChatWebhookDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "CHAT_WEBHOOK"
    }
    ClaimedBin: {
      /** @enum {boolean} */
      claimed: true
      id: string
      source: components["schemas"]["Source"]
      team_id: string
    }
    ClearedRuns: {
      deleted: number
      has_more: boolean
      /** @description Runs that are not at their end; counted up to 10,000 */
      retained_active: number
      workflow_id: string
    }
    CliDestinationConfig:
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          auth_type?: "NO_AUTH" | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: null
        }
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          /**
           * @description Signed with the team's secret: webhook-id, webhook-timestamp, webhook-signature
           * @enum {string}
           */
          auth_type: "SERVICE_SIGNATURE"
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: null
        }
      | {
          auth:
            | {
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value: string
              }
            | {
                /** @enum {boolean} */
                disabled: true
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name?: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value?: string
              }
          /** @enum {string} */
          auth_type: "CUSTOM_HEADER"
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: null
        }
    /**
     * @description Delivers to a program on somebody's own machine, through a tunnel.
     * @example {
     *       "name": "my-laptop",
     *       "type": "CLI",
     *       "config": {
     *         "path": "/webhooks"
     *       }
     *     }
     */
    CliDestinationWrite: {
      config?: components["schemas"]["CliDestinationConfig"] | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "CLI"
    }
    /** @description What a value has to meet: a plain value (equality), a list (each item is met by some element), or an object of fields and operators. */
    Condition: string | number | boolean | null | unknown[] | components["schemas"]["ConditionOperators"]
    /** @description Operators and field names; all must hold. Names may also be written in snake case, and without the $. */
    ConditionOperators: {
      $and?: components["schemas"]["Condition"][]
      $contains?:
        | number
        | string
        | {
            $ref: string
          }
      $endsWith?:
        | string
        | string[]
        | {
            $ref: string
          }
      $eq?: unknown
      $exist?: boolean
      $gt?:
        | number
        | string
        | {
            $ref: string
          }
      $gte?:
        | number
        | string
        | {
            $ref: string
          }
      $in?:
        | (string | number | boolean | null)[]
        | number
        | string
        | {
            $ref: string
          }
      $lt?:
        | number
        | string
        | {
            $ref: string
          }
      $lte?:
        | number
        | string
        | {
            $ref: string
          }
      $neq?: unknown
      $nin?:
        | (string | number | boolean | null)[]
        | number
        | string
        | {
            $ref: string
          }
      $not?: components["schemas"]["Condition"]
      $or?: components["schemas"]["Condition"][]
      /** @description A path in the same document: equality with what is there */
      $ref?: string
      /** @description RE2 syntax, unanchored */
      $regex?: string
      $startsWith?:
        | string
        | string[]
        | {
            $ref: string
          }
    } & {
      [key: string]: components["schemas"]["Condition"]
    }
    /**
     * @description A connection with its source and its destination in full; its rules stand in the order they work in.
     * @example {
     *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
     *       "team_id": "tm_demo",
     *       "name": "shop-to-orders-api",
     *       "description": null,
     *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *       "source": {
     *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *         "team_id": "tm_demo",
     *         "name": "shop",
     *         "description": "Orders of the shop",
     *         "type": "WEBHOOK",
     *         "input_type": "webhook",
     *         "status": "enabled",
     *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *         "config": {
     *           "auth_type": "HMAC",
     *           "auth": {
     *             "webhook_secret_key": "****shop",
     *             "header_key": "x-shop-signature",
     *             "algorithm": "sha256",
     *             "encoding": "hex",
     *             "prefix": "sha256="
     *           },
     *           "allowed_http_methods": [
     *             "POST",
     *             "PUT",
     *             "PATCH",
     *             "DELETE"
     *           ],
     *           "custom_response": null,
     *           "mode": "webhook",
     *           "proxy": null,
     *           "chat_defer_ephemeral": false,
     *           "rate_limit": null,
     *           "rate_limit_period": null
     *         },
     *         "disabled_at": null,
     *         "created_at": "2026-01-01T00:00:00.000Z",
     *         "updated_at": "2026-01-01T00:00:00.000Z"
     *       },
     *       "destination": {
     *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *         "team_id": "tm_demo",
     *         "name": "orders-api",
     *         "description": null,
     *         "type": "HTTP",
     *         "config": {
     *           "url": "https://api.example.com/hooks",
     *           "http_method": null,
     *           "path_forwarding_disabled": false,
     *           "forward_credentials": null,
     *           "rate_limit": 10,
     *           "rate_limit_period": "second",
     *           "max_concurrency": null,
     *           "auth_type": "CUSTOM_HEADER",
     *           "auth": {
     *             "header_name": "x-token",
     *             "value": "****-api"
     *           }
     *         },
     *         "disabled_at": null,
     *         "held_until": null,
     *         "attempts_24h_count": 42,
     *         "attempts_24h_bins": [
     *           0,
     *           0,
     *           1,
     *           4,
     *           20,
     *           17
     *         ],
     *         "created_at": "2026-01-01T00:00:00.000Z",
     *         "updated_at": "2026-01-01T00:00:00.000Z"
     *       },
     *       "rules": [
     *         {
     *           "type": "deduplicate",
     *           "window": 60000,
     *           "include_fields": [
     *             "body.id"
     *           ]
     *         },
     *         {
     *           "type": "filter",
     *           "body": {
     *             "type": {
     *               "$in": [
     *                 "order.created",
     *                 "order.paid"
     *               ]
     *             }
     *           }
     *         },
     *         {
     *           "type": "delay",
     *           "delay": 5000
     *         },
     *         {
     *           "type": "retry",
     *           "strategy": "exponential",
     *           "count": 5,
     *           "interval": 60000,
     *           "response_status_codes": [
     *             "429",
     *             "500-599",
     *             "!501"
     *           ]
     *         }
     *       ],
     *       "ordering": {
     *         "key": "body.customer.id",
     *         "on_failure": "block"
     *       },
     *       "disabled_at": null,
     *       "paused_at": null,
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "updated_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    Connection: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      destination: components["schemas"]["Destination"]
      destination_id: string
      disabled_at: string | null
      id: string
      name: string
      ordering: {
        key: string
        /** @enum {string} */
        on_failure: "block" | "skip"
      } | null
      paused_at: string | null
      rules: components["schemas"]["ConnectionRule"][]
      source: components["schemas"]["Source"]
      source_id: string
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    ConnectionMetrics: {
      connection_id: string
      destination_id: string | null
      events_24h_bins: number[]
      events_24h_cancelled_bins: number[]
      events_24h_cancelled_count: number
      events_24h_count: number
      events_24h_failed_bins: number[]
      events_24h_failed_count: number
      events_24h_pending_bins: number[]
      events_24h_pending_count: number
      events_24h_successful_bins: number[]
      events_24h_successful_count: number
      id: string
      source_id: string | null
      webhook_id: string
    }
    ConnectionPatch: {
      description?: string | null
      destination?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The destination
       * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
       */
      destination_id?: string
      disabled_at?: string | null
      /** @description Printable characters, unique in the team */
      name?: string
      /** @description Events with the same value at `key` are delivered one at a time, in the order in which they came; null: in any order */
      ordering?: components["schemas"]["Ordering"] | null
      paused_at?: string | null
      rules?:
        | (
            | components["schemas"]["DeduplicateRule"]
            | components["schemas"]["TransformRule"]
            | components["schemas"]["InlineTransformRule"]
            | components["schemas"]["FilterRule"]
            | components["schemas"]["DelayRule"]
            | components["schemas"]["RetryRule"]
          )[]
        | null
      source?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The source
       * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
       */
      source_id?: string
    }
    ConnectionRule:
      | components["schemas"]["DeduplicateRule"]
      | components["schemas"]["ShownTransformRule"]
      | components["schemas"]["FilterRule"]
      | components["schemas"]["DelayRule"]
      | components["schemas"]["RetryRule"]
    ConnectionUpsert: {
      description?: string | null
      destination?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The destination
       * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
       */
      destination_id?: string
      disabled_at?: string | null
      /** @description Selects the connection; without it, its source and name do */
      id?: string
      /** @description Printable characters, unique in the team */
      name?: string
      /** @description Events with the same value at `key` are delivered one at a time, in the order in which they came; null: in any order */
      ordering?: components["schemas"]["Ordering"] | null
      paused_at?: string | null
      rules?:
        | (
            | components["schemas"]["DeduplicateRule"]
            | components["schemas"]["TransformRule"]
            | components["schemas"]["InlineTransformRule"]
            | components["schemas"]["FilterRule"]
            | components["schemas"]["DelayRule"]
            | components["schemas"]["RetryRule"]
          )[]
        | null
      source?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The source
       * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
       */
      source_id?: string
    }
    /**
     * @description A source and a destination are needed, by id or as objects with an id.
     * @example {
     *       "name": "shop-to-orders-api",
     *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *       "rules": [
     *         {
     *           "type": "deduplicate",
     *           "window": 60000,
     *           "include_fields": [
     *             "body.id"
     *           ]
     *         },
     *         {
     *           "type": "filter",
     *           "body": {
     *             "type": {
     *               "$in": [
     *                 "order.created",
     *                 "order.paid"
     *               ]
     *             }
     *           }
     *         },
     *         {
     *           "type": "delay",
     *           "delay": 5000
     *         },
     *         {
     *           "type": "retry",
     *           "strategy": "exponential",
     *           "count": 5,
     *           "interval": 60000,
     *           "response_status_codes": [
     *             "429",
     *             "500-599",
     *             "!501"
     *           ]
     *         }
     *       ],
     *       "ordering": {
     *         "key": "body.customer.id",
     *         "on_failure": "block"
     *       }
     *     }
     */
    ConnectionWrite: {
      description?: string | null
      destination?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The destination
       * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
       */
      destination_id?: string
      disabled_at?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @description Events with the same value at `key` are delivered one at a time, in the order in which they came; null: in any order */
      ordering?: components["schemas"]["Ordering"] | null
      paused_at?: string | null
      rules?:
        | (
            | components["schemas"]["DeduplicateRule"]
            | components["schemas"]["TransformRule"]
            | components["schemas"]["InlineTransformRule"]
            | components["schemas"]["FilterRule"]
            | components["schemas"]["DelayRule"]
            | components["schemas"]["RetryRule"]
          )[]
        | null
      source?: {
        id: string
      } & {
        [key: string]: unknown
      }
      /**
       * @description The source
       * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
       */
      source_id?: string
    }
    ConsentEnded: {
      /** @enum {boolean} */
      authorized: true
      destination_id: string
      /** @description Whether the provider has given a refresh token: without one somebody has to consent again when the first token is over */
      renewable: boolean
    }
    /** @description Somebody opens authorization_url in a browser before expires_at, and is led back to redirect_uri. */
    ConsentStarted: {
      authorization_url: string
      expires_at: string
      redirect_uri: string
    }
    /** @description What senders are answered: by the first enabled rule that matches, else the body; without one, the receipt. */
    CustomResponse: {
      body?: string | null
      content_type?: ("json" | "text" | "xml") | null
      rules?:
        | {
            enabled?: boolean | null
            match?: {
              body?: components["schemas"]["Condition"] | null
              headers?: components["schemas"]["NamedCondition"] | null
              method?: components["schemas"]["TextCondition"] | null
              path?: components["schemas"]["TextCondition"] | null
              query?: components["schemas"]["NamedCondition"] | null
            } | null
            response?: {
              body?: string | null
              content_type?: ("json" | "text" | "xml") | null
              headers?: {
                [key: string]: string
              } | null
              status?: number | null
            } | null
          }[]
        | null
    }
    DeduplicateRule: {
      body?: components["schemas"]["Condition"] | null
      /**
       * @description What need not agree
       * @example [
       *       "body.id"
       *     ]
       */
      exclude_fields?: string[]
      headers?: components["schemas"]["NamedCondition"] | null
      /**
       * @description What must agree; with exclude_fields it cannot be used
       * @example [
       *       "body.id"
       *     ]
       */
      include_fields?: string[]
      /** @enum {string} */
      type: "deduplicate"
      /** @description Milliseconds from the first request, in which those that agree with it are ignored */
      window: number
    }
    DelayRule: {
      /** @description Milliseconds from the event's creation to its first attempt */
      delay: number
      /** @enum {string} */
      type: "delay"
    }
    /**
     * @description Waits: for an amount of a unit, or until a time. At most 31 days.
     * @example {
     *       "id": "wait_1d",
     *       "kind": "delay",
     *       "name": "Cool off",
     *       "config": {
     *         "mode": "for",
     *         "amount": 1,
     *         "unit": "days"
     *       }
     *     }
     */
    DelayStep: {
      action?: string | null
      action_revision_id?: string | null
      config: components["schemas"]["DelayStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "delay"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id?: string | null
    }
    DelayStepConfig: {
      amount?: number | string
      /** @enum {string} */
      mode: "for" | "until"
      note?: string
      /** @enum {string} */
      past?: "continue" | "fail"
      timezone?: string
      /** @enum {string} */
      unit?: "seconds" | "minutes" | "hours" | "days" | "weeks"
      until?: string
    }
    Deleted: {
      /** @enum {boolean} */
      deleted: true
      id: string
    }
    /**
     * @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now.
     * @example {
     *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *       "team_id": "tm_demo",
     *       "name": "orders-api",
     *       "description": null,
     *       "type": "HTTP",
     *       "config": {
     *         "url": "https://api.example.com/hooks",
     *         "http_method": null,
     *         "path_forwarding_disabled": false,
     *         "forward_credentials": null,
     *         "rate_limit": 10,
     *         "rate_limit_period": "second",
     *         "max_concurrency": null,
     *         "auth_type": "CUSTOM_HEADER",
     *         "auth": {
     *           "header_name": "x-token",
     *           "value": "****-api"
     *         }
     *       },
     *       "disabled_at": null,
     *       "held_until": null,
     *       "attempts_24h_count": 42,
     *       "attempts_24h_bins": [
     *         0,
     *         0,
     *         1,
     *         4,
     *         20,
     *         17
     *       ],
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "updated_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    Destination: {
      attempts_24h_bins: number[]
      attempts_24h_count: number
      config: components["schemas"]["DestinationConfig"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      disabled_at: string | null
      held_until: string | null
      id: string
      name: string
      team_id: string
      type: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    DestinationConfig:
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
          auth_type: ("NO_AUTH" | "SERVICE_SIGNATURE") | null
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            /** @description true: as if there were no auth */
            disabled?: boolean
            header_name?: string
            value?: string
          }
          /** @enum {string} */
          auth_type: "CUSTOM_HEADER"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            api_key?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
          /** @enum {string} */
          auth_type: "EMAIL_API_KEY"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            bot_token?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
          /** @enum {string} */
          auth_type: "CHAT_BOT_TOKEN"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            account_sid?: string
            auth_token?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
          /** @enum {string} */
          auth_type: "MESSAGING_AUTH_TOKEN"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            access_key_id?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            secret_access_key?: string
            session_token?: string
          }
          /** @enum {string} */
          auth_type: "OBJECT_STORE_R_ACCESS_KEY"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            access_key_id?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            secret_access_key?: string
            session_token?: string
          }
          /** @enum {string} */
          auth_type: "OBJECT_STORE_S_ACCESS_KEY"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            /** @description true: as if there were no auth */
            disabled?: boolean
            password?: string
            username?: string
          }
          /** @enum {string} */
          auth_type: "DATABASE_PASSWORD"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            audience?: string
            client_id?: string
            client_secret?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            scope?: string
            token_auth_method?: string
            token_url?: string
          }
          /** @enum {string} */
          auth_type: "OAUTH2_CLIENT_CREDENTIALS"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            audience?: string
            authorization_url?: string
            client_id?: string
            client_secret?: string
            code?: string
            code_verifier?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            redirect_uri?: string
            refresh_token?: string
            scope?: string
            token_auth_method?: string
            token_url?: string
          }
          /** @enum {string} */
          auth_type: "OAUTH2_AUTHORIZATION_CODE"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            client_id?: string
            client_secret?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            refresh_token?: string
            scope?: string
            token_auth_method?: string
            token_url?: string
          }
          /** @enum {string} */
          auth_type: "OAUTH_REFRESH_TOKEN"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
      | {
          account_id?: string
          /** @description Who may be notified by the message */
          allowed_mentions?: ("roles" | "users" | "everyone")[]
          /** @enum {string} */
          api_base?: "https://api.sendgrid.com" | "https://api.eu.sendgrid.com"
          auth: {
            client_email?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            private_key?: string
            private_key_id?: string
            scope?: string
            subject?: string
            token_uri?: string
          }
          /** @enum {string} */
          auth_type: "SERVICE_ACCOUNT"
          avatar_url?: string | null
          bcc?: string | string[] | null
          blocks_template?: string | null
          body_template?: string | null
          bucket?: string
          cc?: string | string[] | null
          channel?: string
          chat_id?: string
          /**
           * @description The cells of a row in their order: paths like order.id or event_id, or templates
           * @example [
           *       "event_id",
           *       "order.id",
           *       "{{payload.first}} {{payload.last}}"
           *     ]
           */
          columns?: string[]
          /** @enum {string} */
          conflict_mode?: "ERROR" | "IGNORE"
          connect_timeout?: number
          content_sid?: string | null
          content_template?: string
          content_type?: string
          content_variables?: string | null
          /** @example shop */
          database?: string
          delivered_at_column?: string | null
          disable_link_previews?: boolean
          disable_notification?: boolean
          embeds?: string | null
          endpoint?: string | null
          event_id_column?: string | null
          force_path_style?: boolean
          forward_credentials?: boolean | null
          from?: string | null
          from_name?: string | null
          /**
           * @description Host name or IP address of the server
           * @example db.example.com
           */
          host?: string
          html_template?: string | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          include_metadata?: boolean
          key_template?: string
          max_concurrency?: number | null
          /** @description Public URLs or templates of them, like {{payload.media_url}} */
          media_urls?: string[]
          messaging_service_sid?: string | null
          metadata_column?: string | null
          parse_mode?: ("HTML" | "MarkdownV2") | null
          path?: string
          path_forwarding_disabled?: boolean
          /** @description Of type jsonb: gets the body; one that is not JSON as a JSON string */
          payload_column?: string
          port?: number
          range?: string | null
          rate_limit: number | null
          /** @enum {string} */
          rate_limit_period: "second" | "minute" | "hour" | "day"
          region?: string
          reply_to?: string | null
          /** @description The table's schema */
          schema?: string
          sheet_name?: string
          spreadsheet_id?: string
          subject?: string
          /** @description Upper and lower case count, as in the columns */
          table?: string
          text_template?: string | null
          /** @enum {string} */
          tls_mode?: "verify-full" | "disable"
          to?: string | string[]
          /** Format: uri */
          url?: string
          username?: string | null
          /** @enum {string} */
          value_input_option?: "RAW" | "USER_ENTERED"
        }
    DestinationConfigPatch: {
      /** @example 0123456789abcdef0123456789abcdef */
      account_id?: string
      allowed_mentions?: ("roles" | "users" | "everyone")[] | null
      api_base?: ("https://api.sendgrid.com" | "https://api.eu.sendgrid.com") | null
      auth?:
        | {
            /** @description true: as if there were no auth */
            disabled?: boolean
            /**
             * @description None that HTTP or the gateway sets
             * @example x-token
             */
            header_name: string
            /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
            value: string
          }
        | {
            /** @enum {boolean} */
            disabled: true
            /**
             * @description None that HTTP or the gateway sets
             * @example x-token
             */
            header_name?: string
            /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
            value?: string
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            api_key: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            api_key?: string
            /** @enum {boolean} */
            disabled: true
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token?: string
            /** @enum {boolean} */
            disabled: true
          }
        | {
            account_sid: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            account_sid?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token?: string
            /** @enum {boolean} */
            disabled: true
          }
        | {
            access_key_id: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            access_key_id?: string
            /** @enum {boolean} */
            disabled: true
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            access_key_id: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            access_key_id?: string
            /** @enum {boolean} */
            disabled: true
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            /** @description true: as if there were no auth */
            disabled?: boolean
            password: string
            username: string
          }
        | {
            /** @enum {boolean} */
            disabled: true
            password?: string
            username?: string
          }
        | {
            audience?: string
            client_id: string
            client_secret: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url: string
          }
        | {
            audience?: string
            client_id?: string
            client_secret?: string
            /** @enum {boolean} */
            disabled: true
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url?: string
          }
        | {
            audience?: string
            /**
             * Format: uri
             * @description Where somebody consents, with what the provider wants to be asked beside in its query
             */
            authorization_url?: string
            client_id: string
            client_secret: string
            code?: string
            code_verifier?: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            /**
             * Format: uri
             * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
             */
            redirect_uri?: string
            refresh_token?: string
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url: string
          }
        | {
            audience?: string
            /**
             * Format: uri
             * @description Where somebody consents, with what the provider wants to be asked beside in its query
             */
            authorization_url?: string
            client_id?: string
            client_secret?: string
            code?: string
            code_verifier?: string
            /** @enum {boolean} */
            disabled: true
            /**
             * Format: uri
             * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
             */
            redirect_uri?: string
            refresh_token?: string
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url?: string
          }
        | {
            client_id: string
            client_secret: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            refresh_token: string
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url: string
          }
        | {
            client_id?: string
            client_secret?: string
            /** @enum {boolean} */
            disabled: true
            refresh_token?: string
            scope?: string
            /**
             * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
            /**
             * Format: uri
             * @description Where tokens are asked for
             */
            token_url?: string
          }
        | {
            client_email: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            private_key: string
            private_key_id?: string
            scope?: string
            subject?: string
            /**
             * Format: uri
             * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
             */
            token_uri?: string
          }
        | {
            client_email?: string
            /** @enum {boolean} */
            disabled: true
            private_key?: string
            private_key_id?: string
            scope?: string
            subject?: string
            /**
             * Format: uri
             * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
             */
            token_uri?: string
          }
        | {
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | null
      auth_type?:
        | (
            | "NO_AUTH"
            | "SERVICE_SIGNATURE"
            | "CUSTOM_HEADER"
            | "EMAIL_API_KEY"
            | "CHAT_BOT_TOKEN"
            | "MESSAGING_AUTH_TOKEN"
            | "OBJECT_STORE_R_ACCESS_KEY"
            | "OBJECT_STORE_S_ACCESS_KEY"
            | "DATABASE_PASSWORD"
            | "OAUTH2_CLIENT_CREDENTIALS"
            | "OAUTH2_AUTHORIZATION_CODE"
            | "OAUTH_REFRESH_TOKEN"
            | "SERVICE_ACCOUNT"
          )
        | null
      avatar_url?: string | null
      bcc?: (string | string[]) | null
      blocks_template?: string | null
      body_template?: string | null
      /** @example webhook-archive */
      bucket?: string
      cc?: (string | string[]) | null
      channel?: string
      chat_id?: string
      columns?: string[] | null
      conflict_mode?: ("ERROR" | "IGNORE") | null
      connect_timeout?: number | null
      content_sid?: string | null
      content_template?: string | null
      content_type?: string | null
      content_variables?: string | null
      /** @example shop */
      database?: string
      delivered_at_column?: string | null
      disable_link_previews?: boolean | null
      disable_notification?: boolean | null
      embeds?: string | null
      endpoint?: string | null
      event_id_column?: string | null
      force_path_style?: boolean | null
      forward_credentials?: boolean | null
      from?: string | null
      from_name?: string | null
      /**
       * @description Host name or IP address of the server
       * @example db.example.com
       */
      host?: string
      html_template?: string | null
      http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
      include_metadata?: boolean | null
      key_template?: string | null
      max_concurrency?: number | null
      /** @description Public URLs or templates of them, like {{payload.media_url}} */
      media_urls?: string[]
      messaging_service_sid?: string | null
      metadata_column?: string | null
      parse_mode?: ("HTML" | "MarkdownV2") | null
      path?: string | null
      path_forwarding_disabled?: boolean | null
      payload_column?: string | null
      port?: number | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      /**
       * @description The bucket's region, which signatures name
       * @example eu-central-1
       */
      region?: string
      reply_to?: string | null
      schema?: string | null
      sheet_name?: string | null
      /**
       * @description The id in the spreadsheet's URL, between /d/ and /edit
       * @example 1BxiMVs0XRA5nFMd
       */
      spreadsheet_id?: string
      subject?: string | null
      /** @description Upper and lower case count, as in the columns */
      table?: string
      text_template?: string | null
      tls_mode?: ("verify-full" | "disable") | null
      /** @description Addresses or templates, each of one address; at most 10 in to, cc and bcc together */
      to?: string | string[]
      /**
       * Format: uri
       * @description The webhook's execute URL. Encrypted at rest, masked on read; writing the mask back keeps it
       * @example https://discord.com/api/webhooks/1234/token
       */
      url?: string
      username?: string | null
      value_input_option?: ("RAW" | "USER_ENTERED") | null
    }
    DestinationMetrics: {
      attempts_24h_bins: number[]
      attempts_24h_count: number
      connections_count: number
      destination_id: string
      events_24h_bins: number[]
      events_24h_cancelled_bins: number[]
      events_24h_cancelled_count: number
      events_24h_count: number
      events_24h_failed_bins: number[]
      events_24h_failed_count: number
      events_24h_pending_bins: number[]
      events_24h_pending_count: number
      events_24h_successful_bins: number[]
      events_24h_successful_count: number
      id: string
    }
    /**
     * @description What is given is merged into what is there; auth is replaced whole.
     * @example {
     *       "config": {
     *         "rate_limit": 5
     *       }
     *     }
     */
    DestinationPatch: {
      config?: components["schemas"]["DestinationConfigPatch"] | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name?: string
      /** @enum {string} */
      type?:
        | "HTTP"
        | "CLI"
        | "MOCK_API"
        | "SPREADSHEET"
        | "MAILBOX_EMAIL"
        | "EMAIL_API_EMAIL"
        | "CHAT_BOT"
        | "CHAT_WEBHOOK"
        | "MESSENGER_MESSAGE"
        | "MESSAGING_CHAT"
        | "MESSAGING_SMS"
        | "MESSAGING_MMS"
        | "OBJECT_STORE_R"
        | "OBJECT_STORE_S"
        | "SQL_DATABASE"
    }
    /**
     * @description Sends to a destination (des_…), by its pacing, credentials and retries.
     * @example {
     *       "id": "to_crm",
     *       "kind": "destination",
     *       "name": "CRM",
     *       "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *       "invocation_inputs": {
     *         "body": {
     *           "order": "{{trigger.body.id}}"
     *         }
     *       },
     *       "config": {
     *         "timeout_ms": 30000,
     *         "retry": {
     *           "strategy": "exponential",
     *           "interval": 1000,
     *           "count": 3
     *         }
     *       }
     *     }
     */
    DestinationStep: {
      action?: string | null
      action_revision_id?: string | null
      config?: components["schemas"]["DestinationStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "destination"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id: string
    }
    DestinationStepConfig: {
      for_each?: string
      note?: string
      /** @enum {string} */
      on_error?: "fail" | "continue" | "branch"
      retry?: {
        /** @description Retries after the first attempt; 5 unless told */
        count?: number
        error_codes?: string[]
        /** @description Milliseconds to the first retry; 60000 unless told */
        interval?: number
        /** @enum {string} */
        jitter?: "none" | "full"
        /** @description Milliseconds that a wait is long at the most; a day unless told */
        max_interval?: number
        response_status_codes?: (string | number)[]
        /** @enum {string} */
        strategy?: "linear" | "exponential"
      } | null
      /** @description Milliseconds that an attempt may take; 30000 unless told */
      timeout_ms?: number
    }
    /** @description By type. The members of config may also stand at the top level. */
    DestinationWrite:
      | components["schemas"]["HttpDestinationWrite"]
      | components["schemas"]["CliDestinationWrite"]
      | components["schemas"]["MockApiDestinationWrite"]
      | components["schemas"]["SpreadsheetDestinationWrite"]
      | components["schemas"]["MailboxEmailDestinationWrite"]
      | components["schemas"]["EmailApiEmailDestinationWrite"]
      | components["schemas"]["ChatBotDestinationWrite"]
      | components["schemas"]["ChatWebhookDestinationWrite"]
      | components["schemas"]["MessengerMessageDestinationWrite"]
      | components["schemas"]["MessagingChatDestinationWrite"]
      | components["schemas"]["MessagingSmsDestinationWrite"]
      | components["schemas"]["MessagingMmsDestinationWrite"]
      | components["schemas"]["ObjectStoreRDestinationWrite"]
      | components["schemas"]["ObjectStoreSDestinationWrite"]
      | components["schemas"]["SqlDatabaseDestinationWrite"]
    EmailApiEmailDestinationConfig: {
      api_base?: ("https://api.sendgrid.com" | "https://api.eu.sendgrid.com") | null
      auth:
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            api_key: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            api_key?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The key of an e-mail API
       * @enum {string}
       */
      auth_type: "EMAIL_API_KEY"
      bcc?: (string | string[]) | null
      cc?: (string | string[]) | null
      from: string
      from_name?: string | null
      html_template?: string | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      reply_to?: string | null
      subject?: string | null
      text_template?: string | null
      /** @description Addresses or templates, each of one address; at most 10 in to, cc and bcc together */
      to: string | string[]
    }
    /**
     * @description Sends an e-mail by an API (SendGrid).
     * @example {
     *       "name": "mail-to-ops",
     *       "type": "EMAIL_API_EMAIL",
     *       "config": {
     *         "from": "orders@example.com",
     *         "to": "ops@example.com",
     *         "text_template": "Order {{payload.id}} has arrived",
     *         "auth_type": "EMAIL_API_KEY",
     *         "auth": {
     *           "api_key": "SG.0000.0000"
     *         }
     *       }
     *     }
     */
    EmailApiEmailDestinationWrite: {
      config: components["schemas"]["EmailApiEmailDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "EMAIL_API_EMAIL"
    }
    ErrorBody: {
      /** @enum {string} */
      code:
        | "ACTION_OPTIONS_INVALID"
        | "BIN_ALREADY_CLAIMED"
        | "BIN_EXPIRED"
        | "BULK_OPERATION_NOT_CANCELABLE"
        | "BULK_OPERATION_NOT_RUNNABLE"
        | "CONNECTION_DISABLED"
        | "CONNECTION_PAUSED"
        | "DESTINATION_DISABLED"
        | "EMPTY_FILTER"
        | "EVENT_NOT_RETRYABLE"
        | "EXECUTE_GRANT_REQUIRED"
        | "FILTER_LIMIT_REACHED"
        | "FIXTURE_TARGET_INVALID"
        | "FORMATTER_ANCHOR_INVALID"
        | "FORMATTER_BODY_TOO_LARGE"
        | "FORMATTER_CONFIG_INVALID"
        | "FORMATTER_CSV_INVALID"
        | "FORMATTER_CURRENCY_UNKNOWN"
        | "FORMATTER_DATE_EXPRESSION_INVALID"
        | "FORMATTER_DATE_FORMAT_INVALID"
        | "FORMATTER_DATE_OUT_OF_RANGE"
        | "FORMATTER_DATE_UNPARSEABLE"
        | "FORMATTER_DIVISION_BY_ZERO"
        | "FORMATTER_ENVELOPE_INVALID"
        | "FORMATTER_FORMULA_ARGUMENTS"
        | "FORMATTER_FORMULA_DOMAIN"
        | "FORMATTER_FORMULA_LIMIT"
        | "FORMATTER_FORMULA_SYNTAX"
        | "FORMATTER_FORMULA_TYPE"
        | "FORMATTER_FORMULA_UNKNOWN_FUNCTION"
        | "FORMATTER_FORMULA_UNKNOWN_VARIABLE"
        | "FORMATTER_INPUT_INVALID"
        | "FORMATTER_INPUT_REQUIRED"
        | "FORMATTER_LIMIT_EXCEEDED"
        | "FORMATTER_LINE_ITEMS_NOT_SUPPORTED"
        | "FORMATTER_LOCALE_UNKNOWN"
        | "FORMATTER_OUTPUT_TOO_LARGE"
        | "FORMATTER_PATTERN_INVALID"
        | "FORMATTER_TEMPLATE_INVALID"
        | "FORMATTER_TIMEOUT"
        | "FORMATTER_TIMEZONE_UNKNOWN"
        | "FORMATTER_UNKNOWN_OPERATION"
        | "FORMATTER_VERSION_UNSUPPORTED"
        | "IDEMPOTENCY_KEY_IN_USE"
        | "IDEMPOTENCY_KEY_REUSED"
        | "INSUFFICIENT_SCOPE"
        | "INTERNAL_ERROR"
        | "INVALID_API_KEY"
        | "INVALID_BIN_TOKEN"
        | "INVALID_CURSOR"
        | "INVALID_FILTER_NAME"
        | "INVALID_ID_TOKEN"
        | "INVALID_JSON"
        | "INVALID_KEY_POLICY"
        | "INVALID_TIME_RANGE"
        | "LEGACY_POLICY_CUTOVER_INCOMPLETE"
        | "LIMIT_EXCEEDED"
        | "LOGIN_DISABLED"
        | "LOOP_DETECTED"
        | "NOT_FOUND"
        | "OAUTH2_HANDSHAKE_FAILED"
        | "OAUTH2_STATE_INVALID"
        | "PAYLOAD_TOO_LARGE"
        | "PAYLOAD_UNAVAILABLE"
        | "PROJECT_KEY_LIMIT_REACHED"
        | "PROJECT_KEY_REVOKED"
        | "PROVIDER_ACCOUNT_NOT_CONNECTED"
        | "QUEUE_UNAVAILABLE"
        | "RATE_LIMITED"
        | "REQUEST_TIMEOUT"
        | "RESOURCE_ALREADY_EXISTS"
        | "RESOURCE_IN_USE"
        | "ROLE_REQUIRED"
        | "RULE_INVALID"
        | "RUN_ACTIVE"
        | "RUN_PAYLOAD_EXPIRED"
        | "SAMPLE_UNAVAILABLE"
        | "SERVICE_WORKER_REFUSED"
        | "SESSION_EXPIRED"
        | "SHARE_EXPIRED"
        | "SHARE_NOT_FOUND"
        | "SHARE_REVOKED"
        | "SOURCE_AUTH_FAILED"
        | "SOURCE_DISABLED"
        | "SOURCE_METHOD_NOT_ALLOWED"
        | "STEP_NOT_RETRYABLE"
        | "TEAM_FORBIDDEN"
        | "TEAM_LIMIT_REACHED"
        | "TEMPLATE_BINDING_INVALID"
        | "TRANSFORMATION_INVALID"
        | "UNAUTHENTICATED"
        | "UNSUPPORTED_CONTENT_TYPE"
        | "UPGRADE_REQUIRED"
        | "UPSTREAM_ERROR"
        | "UPSTREAM_TIMEOUT"
        | "USER_SESSION_REQUIRED"
        | "VALIDATION_ERROR"
        | "WORKFLOW_GRAPH_INVALID"
        | "WORKFLOW_NOT_EXECUTABLE"
        | "workflow_conflict"
      data?: {
        [key: string]: unknown
      }
      error: string
      message: string
      status: number
    }
    Event: {
      attempts: number
      cli_id: string | null
      connection_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      data?: components["schemas"]["EventData"] | null
      destination_id: string
      error_code: string | null
      event_data_id: string
      failure_message: string | null
      id: string
      ignored_reason: string | null
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      ingested_at: string
      is_retry: boolean
      last_attempt_at: string | null
      next_attempt_at: string | null
      rejection_cause: string | null
      request_id: string
      resolved_at: string | null
      resolved_by_event_id: string | null
      response_status: number | null
      retried_at: string | null
      retry_kind: ("single" | "bulk") | null
      retry_operation_id: string | null
      retry_parent_event_id: string | null
      source_id: string
      /** @enum {string} */
      status: "SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED"
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      stored_at: string
      successful_at: string | null
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      webhook_id: string
    }
    /**
     * @description Which events: those that the list with the same filters shows. A retry leaves those out that a later retry has resolved, unless `resolved` is told.
     * @example {
     *       "from": "now-1h",
     *       "to": "now",
     *       "status": "FAILED",
     *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk"
     *     }
     */
    EventBulkRetry: {
      /**
       * @description retry, unless told; or cancel: of events that wait
       * @enum {string}
       */
      action?: "retry" | "cancel"
      /** @description true: whenever it was. Needed where no other member says what the operation is of */
      all?: boolean
      /** @description The bulk operation that made them */
      batch_operation_id?: string
      /**
       * @description Of the bulk operation: the events it made (retries, unless told), those it retried (targets), or both
       * @enum {string}
       */
      batch_operation_scope?: "retries" | "targets" | "related"
      /** @description Alias of batch_operation_id */
      bulk_operation_id?: string
      /** @description false: a plan is made, to be looked at, and begins when it is told to run; else it runs at once */
      confirm?: boolean
      /** @description Only events of these connections */
      connection_id?: string | string[]
      /** @description Only events to these destinations */
      destination_id?: string | string[]
      /** @description Alias of to */
      end?: string
      /** @description Only events whose last attempt failed with these codes */
      error_code?: string | string[]
      /** @description Start of the window: ISO 8601, or now-<n><s|m|h|d>; unless told a day before its end, and with `all` none */
      from?: string
      /** @description Whether it is a retry, or a replay */
      is_retry?: boolean
      /** @description Looks for this in ids and further fields */
      q?: string
      /** @description Targets a second at the most; as many as live traffic leaves unless told */
      rate?: number
      /** @description Only events of these requests, whenever they were made unless a window is given */
      request_id?: string | string[]
      /** @description Whether a later retry of it has succeeded */
      resolved?: boolean
      /** @description Only events whose last answer had these statuses: 500, or 500-599 */
      response_status?: string | string[]
      /**
       * @description Only retries of one, or of a bulk operation
       * @enum {string}
       */
      retry_kind?: "single" | "bulk"
      /** @description Alias of q */
      search?: string
      /** @description Alias of q */
      search_term?: string
      /** @description Only events of these sources */
      source_id?: string | string[]
      /** @description Alias of from */
      start?: string
      /** @description Only events of these states */
      status?:
        | ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")
        | ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")[]
      /** @description End of the window, at the latest now; now unless told */
      to?: string
      /** @description Alias of connection_id */
      webhook_id?: string | string[]
    }
    EventCount: {
      applied_range: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        from: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        to: string
      }
      count: number
      total: number
      total_exact: boolean
    }
    EventData: {
      request: {
        body: unknown
        /** @enum {string} */
        encoding: "json" | "text" | "base64"
        headers: {
          [key: string]: string | string[]
        }
        is_large_payload: boolean
        method: string
        path: string
        query: string
        reason?: string
        url: string | null
      }
      response: {
        body: string | null
        /** @enum {string} */
        encoding: "text" | "base64"
        headers: {
          [key: string]: string | string[]
        } | null
        status: number | null
      } | null
    }
    EventSeries: {
      date_range: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        end: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        start: string
      }
      /** @enum {string} */
      granularity: "1s" | "5s" | "10s" | "30s" | "1m" | "5m" | "15m" | "1h"
      partial: boolean
      series: {
        count?: number
        delivered_count?: number
        failed_count?: number
        hold_count?: number
        ignored_count?: number
        processing_count?: number
        queued_count?: number
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        timestamp: string
      }[]
    }
    Execution: {
      code_hash: string
      connection_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      error_code: string | null
      error_message: string | null
      event_id: string | null
      id: string
      /** @enum {string} */
      log_level: "debug" | "info" | "warn" | "error" | "fatal"
      logs: {
        message: string
        /** @enum {string} */
        type: "debug" | "log" | "info" | "warn" | "error"
      }[]
      logs_truncated: boolean
      original_event_data_id: string
      request_id: string
      /** @enum {string} */
      runtime: "js-v1"
      source_id: string
      stats: {
        duration_ms: number
        memory_bytes: number
      }
      team_id: string
      transformation_id: string
      transformed_event_data_id: string | null
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      webhook_id: string
    }
    ExecutionDetail: {
      code_hash: string
      connection_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      error_code: string | null
      error_message: string | null
      event_id: string | null
      id: string
      /** @enum {string} */
      log_level: "debug" | "info" | "warn" | "error" | "fatal"
      logs: {
        message: string
        /** @enum {string} */
        type: "debug" | "log" | "info" | "warn" | "error"
      }[]
      logs_truncated: boolean
      original_event_data: components["schemas"]["RequestData"] | null
      original_event_data_id: string
      request_id: string
      /** @enum {string} */
      runtime: "js-v1"
      source_id: string
      stats: {
        duration_ms: number
        memory_bytes: number
      }
      team_id: string
      transformation_id: string
      transformed_event_data: components["schemas"]["RequestData"] | null
      transformed_event_data_id: string | null
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      webhook_id: string
    }
    /** @description A stored filter with the connections that link it, at most 100 of them. */
    Filter: {
      body: components["schemas"]["Condition"] | null
      conditions: components["schemas"]["FilterConditions"]
      connections: components["schemas"]["FilterConnection"][]
      connections_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      headers: components["schemas"]["NamedCondition"] | null
      id: string
      name: string
      path: components["schemas"]["TextCondition"] | null
      query: components["schemas"]["NamedCondition"] | null
      sample_connection_id: string | null
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      workflow_steps_count: number
    }
    /**
     * @description What a request has to meet: all that is given, and something has to be.
     * @example {
     *       "headers": {
     *         "x-env": "prod"
     *       },
     *       "body": {
     *         "type": {
     *           "$in": [
     *             "order.paid",
     *             "order.captured"
     *           ]
     *         },
     *         "total": {
     *           "$gte": 100
     *         }
     *       }
     *     }
     */
    FilterConditions: {
      body?: components["schemas"]["Condition"] | null
      headers?: components["schemas"]["NamedCondition"] | null
      path?: components["schemas"]["TextCondition"] | null
      query?: components["schemas"]["NamedCondition"] | null
    }
    FilterConnection: {
      destination_id: string
      disabled_at: string | null
      id: string
      name: string
      paused_at: string | null
      source_id: string
    }
    FilterDeleted: {
      /** @enum {boolean} */
      deleted: true
      detached_connections: number
      id: string
    }
    /** @description Conditions are replaced whole. */
    FilterPatch: {
      body?: components["schemas"]["Condition"] | null
      conditions?: components["schemas"]["FilterConditions"]
      headers?: components["schemas"]["NamedCondition"] | null
      /** @description Letters, digits, underscores and hyphens; unique in the team */
      name?: string
      path?: components["schemas"]["TextCondition"] | null
      query?: components["schemas"]["NamedCondition"] | null
    }
    /** @description Lets through what meets all that is given; filter_id or one of headers, body, query and path is needed. */
    FilterRule: {
      body?: components["schemas"]["Condition"] | null
      /** @description The stored filter that the conditions are of, which was deleted */
      detached_from_filter?: {
        detached_at: string
        id: string
        name: string
      }
      /**
       * @description A stored filter, whose conditions the rule goes by; instead of its own
       * @example flt_01kak1z4r5g7b3k6j1h9f8e0mn
       */
      filter_id?: string
      /** @description The version of the stored filter that the conditions are a copy of */
      filter_snapshot?: {
        captured_at: string
        hash: string
        name: string
      }
      headers?: components["schemas"]["NamedCondition"] | null
      path?: components["schemas"]["TextCondition"] | null
      query?: components["schemas"]["NamedCondition"] | null
      /** @enum {string} */
      type: "filter"
    }
    /**
     * @description Goes on where its conditions hold, its own or those of a stored filter (flt_…).
     * @example {
     *       "id": "only_paid",
     *       "kind": "filter",
     *       "name": "Paid only",
     *       "config": {
     *         "conditions": {
     *           "trigger": {
     *             "body": {
     *               "status": {
     *                 "$in": [
     *                   "paid",
     *                   "captured"
     *                 ]
     *               }
     *             }
     *           }
     *         }
     *       }
     *     }
     */
    FilterStep: {
      action?: string | null
      action_revision_id?: string | null
      config?: components["schemas"]["FilterStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "filter"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id?: string | null
    }
    FilterStepConfig: {
      conditions?: unknown
      detached_from_filter?: {
        detached_at: string
        id: string
        name: string
      }
      note?: string
    }
    /**
     * @example {
     *       "matched": true,
     *       "targets": {
     *         "headers": null,
     *         "body": true,
     *         "query": null,
     *         "path": null
     *       },
     *       "explanation": [
     *         {
     *           "target": "body",
     *           "path": "total",
     *           "operator": "$gte",
     *           "expected": 100,
     *           "actual": "120.00",
     *           "matched": true
     *         }
     *       ]
     *     }
     */
    FilterTest: {
      /** @description Each operator by itself, at most 50; values are cut at 200 characters */
      explanation: {
        /** @description What is there, without what is secret; null when nothing is */
        actual: unknown
        expected: unknown
        matched: boolean
        /** @description Null: each item of a list is met by some element, or all of an object by one element */
        operator: string | null
        /** @description The place in it; empty: the whole */
        path: string
        /** @enum {string} */
        target: "headers" | "body" | "query" | "path"
      }[]
      matched: boolean
      targets: {
        /** @description Whether the body is as asked; null: it is not asked about */
        body: boolean | null
        /** @description Whether the header is as asked; null: it is not asked about */
        headers: boolean | null
        /** @description Whether the path is as asked; null: it is not asked about */
        path: boolean | null
        /** @description Whether the query is as asked; null: it is not asked about */
        query: boolean | null
      }
    }
    /**
     * @description What to ask, and what about: one of `conditions`, its alias `filter`, and `filter_id`; one of `request`, its alias `input`, and `request_id`.
     * @example {
     *       "conditions": {
     *         "body": {
     *           "total": {
     *             "$gte": 100
     *           }
     *         }
     *       },
     *       "request": {
     *         "headers": {
     *           "content-type": "application/json"
     *         },
     *         "body": {
     *           "total": "120.00"
     *         },
     *         "query": {},
     *         "path": "/orders"
     *       }
     *     }
     */
    FilterTestInput: {
      conditions?: components["schemas"]["FilterConditions"]
      filter?: components["schemas"]["FilterConditions"]
      /**
       * @description A stored filter, instead of conditions
       * @example flt_01kak1z4r5g7b3k6j1h9f8e0mn
       */
      filter_id?: string
      input?: components["schemas"]["RequestSample"]
      request?: components["schemas"]["RequestSample"]
      /** @description A request that was received, instead of one that is written */
      request_id?: string
    }
    /**
     * @description Conditions are needed: in `conditions`, or as members of their own.
     * @example {
     *       "name": "paid-orders",
     *       "conditions": {
     *         "headers": {
     *           "x-env": "prod"
     *         },
     *         "body": {
     *           "type": {
     *             "$in": [
     *               "order.paid",
     *               "order.captured"
     *             ]
     *           },
     *           "total": {
     *             "$gte": 100
     *           }
     *         }
     *       }
     *     }
     */
    FilterWrite: {
      body?: components["schemas"]["Condition"] | null
      conditions?: components["schemas"]["FilterConditions"]
      headers?: components["schemas"]["NamedCondition"] | null
      /** @description Letters, digits, underscores and hyphens; unique in the team */
      name: string
      path?: components["schemas"]["TextCondition"] | null
      query?: components["schemas"]["NamedCondition"] | null
    }
    Fixture: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      id: string
      last_replayed_at: string | null
      name: string
      original_request_id: string
      replay_count: number
      snapshot?: components["schemas"]["RequestData"]
      source_id: string
      source_name: string
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    FixturePatch: {
      /** @description What is expected of it, or what it is an example of */
      description?: string | null
      /** @description For people */
      name?: string
    }
    FixtureReplay: {
      /** @description One of the fixture's targets */
      connection_id: string
    }
    /** @description replay_request_id is the new request. */
    FixtureReplayed: {
      connection_id: string
      destination_id: string
      fixture_id: string
      message_id: string
      /** @enum {boolean} */
      queued: true
      replay_request_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      replayed_at: string
    }
    FixtureTarget: {
      connection_id: string
      connection_name: string
      destination_id: string
      destination_name: string
      destination_type: string
      source_id: string
      source_name: string
    }
    FixtureWrite: {
      /** @description What is expected of it, or what it is an example of */
      description?: string | null
      /** @description For people */
      name: string
      /** @description The request that it is a copy of */
      request_id: string
    }
    /** @description All operations, with all that a form of one needs. */
    FormatterCatalog: {
      /** @description Another one whenever anything else of the catalog is */
      catalog_hash: string
      categories: {
        key: string
        label: string
        operations: components["schemas"]["FormatterOperation"][]
      }[]
      data_versions: components["schemas"]["FormatterDataVersions"]
      engine_version: string
      limits: {
        [key: string]: number
      }
      supported_versions: string[]
    }
    /** @description The data that results depend on beside the engine. */
    FormatterDataVersions: {
      cldr: string
      icu: string
      phone: string
      tz: string
    }
    FormatterField: {
      choices:
        | {
            label: string
            sample: string | null
            value: string | number
          }[]
        | null
      /** @description Beside the choices others are taken */
      custom?: boolean
      default: unknown
      help: string | null
      key: string
      label: string
      /** @description A list is run through element by element */
      line_items: boolean
      /** @description An input, which templates may give; else an option */
      mappable: boolean
      maximum?: number
      minimum?: number
      required: boolean
      /** @enum {string} */
      type:
        | "string"
        | "text"
        | "integer"
        | "number"
        | "boolean"
        | "datetime"
        | "timezone"
        | "select"
        | "key_value"
        | "list"
        | "formula"
        | "pattern"
        | "any"
    }
    FormatterOperation: {
      description: string
      /** @description No chance: not even that of the seed */
      deterministic: boolean
      dynamic_fields: {
        fields: components["schemas"]["FormatterField"][]
        when: {
          field: string
          in: string[]
        }
      }[]
      errors: string[]
      fields: components["schemas"]["FormatterField"][]
      key: string
      label: string
      limits: {
        [key: string]: number
      }
      line_item_policy: {
        /** @description Options may say otherwise */
        by_options: boolean
        fields: string[]
        max: number
        /** @enum {string} */
        mode: "map" | "aggregate" | "reject"
      }
      output_schema: Record<string, unknown>
      sample: {
        inputs: Record<string, unknown>
        options: Record<string, unknown>
        output: Record<string, unknown>
      }
      since: string
      warnings: string[]
    }
    /** @description What the operation made of the inputs. */
    FormatterTrial: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      anchor_at: string
      data_versions: components["schemas"]["FormatterDataVersions"]
      duration_ms: number
      engine_version: string
      line_items: {
        applied: boolean
        count: number
      }
      operation: string
      output: Record<string, unknown>
      /** @description Of this output */
      output_schema: Record<string, unknown>
      /** @description The inputs, with what their templates stand for */
      resolved_input: Record<string, unknown>
      warnings: {
        code: string
        field: string | null
        line_item_index: number | null
        message: string
      }[]
    }
    /** @description A step, and a sample for it. */
    FormatterTrialInput: {
      anchor_at?: string | null
      config: {
        /** @description The current one, unless told */
        engine_version?: string
        operation: string
        options?: Record<string, unknown>
      }
      /** @description The sample that templates are filled from */
      context?: Record<string, unknown>
      /** @description Values, whose texts may have templates: `{{trigger.body.name}}` */
      inputs?: Record<string, unknown>
      /** @description What chance is drawn from; `test` unless told */
      seed?: string
      /** @description The zone of what names none; UTC unless told */
      timezone?: string
    }
    /**
     * @description A source whose own settings say how its senders are verified.
     * @example {
     *       "name": "shop",
     *       "description": "Orders of the shop",
     *       "type": "WEBHOOK",
     *       "config": {
     *         "auth_type": "HMAC",
     *         "auth": {
     *           "webhook_secret_key": "shared-with-the-shop",
     *           "header_key": "x-shop-signature",
     *           "prefix": "sha256="
     *         }
     *       }
     *     }
     */
    GenericSourceWrite: {
      config?:
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | components["schemas"]["HmacSourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @description WEBHOOK unless told. Any other name that is no provider's, and not nearly one; a vendor that the gateway does not know needs an auth_type */
      type?: string
      url?: string | null
    }
    /**
     * @description A source whose own settings say how its senders are verified.
     * @example {
     *       "name": "shop",
     *       "description": "Orders of the shop",
     *       "type": "WEBHOOK",
     *       "config": {
     *         "auth_type": "HMAC",
     *         "auth": {
     *           "webhook_secret_key": "shared-with-the-shop",
     *           "header_key": "x-shop-signature",
     *           "prefix": "sha256="
     *         }
     *       }
     *     }
     */
    GenericSourceWrite_1: {
      config?:
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | components["schemas"]["HmacSourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @description WEBHOOK unless told. Any other name that is no provider's, and not nearly one; a vendor that the gateway does not know needs an auth_type */
      type?: string
      url?: string | null
    }
    HmacAuth: {
      algorithm?: ("md5" | "sha1" | "sha256" | "sha512") | null
      encoding?: ("hex" | "base64" | "base64url") | null
      header_key?: string | null
      prefix?: string | null
      timestamp_header?: string | null
      tolerance_seconds?: number | null
      /** @description The secret shared with the sender. Encrypted at rest, masked on read; writing the mask back keeps it */
      webhook_secret_key: string
    }
    HmacSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["HmacAuth"]
      /** @enum {string} */
      auth_type: "HMAC"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    HmacSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["HmacAuth"]
      /** @enum {string} */
      auth_type: "HMAC"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    HttpDestinationConfig:
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          auth_type?: "NO_AUTH" | null
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          /**
           * @description Signed with the team's secret: webhook-id, webhook-timestamp, webhook-signature
           * @enum {string}
           */
          auth_type: "SERVICE_SIGNATURE"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth:
            | {
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value: string
              }
            | {
                /** @enum {boolean} */
                disabled: true
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name?: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value?: string
              }
          /** @enum {string} */
          auth_type: "CUSTOM_HEADER"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth:
            | {
                audience?: string
                client_id: string
                client_secret: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                audience?: string
                client_id?: string
                client_secret?: string
                /** @enum {boolean} */
                disabled: true
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token that the provider gives to the gateway as its client
           * @enum {string}
           */
          auth_type: "OAUTH2_CLIENT_CREDENTIALS"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth:
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id: string
                client_secret: string
                code?: string
                code_verifier?: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id?: string
                client_secret?: string
                code?: string
                code_verifier?: string
                /** @enum {boolean} */
                disabled: true
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token that somebody has consented to: at the gateway's request, or elsewhere
           * @enum {string}
           */
          auth_type: "OAUTH2_AUTHORIZATION_CODE"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth:
            | {
                client_id: string
                client_secret: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                refresh_token: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                client_id?: string
                client_secret?: string
                /** @enum {boolean} */
                disabled: true
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token for a refresh token that somebody has given the gateway
           * @enum {string}
           */
          auth_type: "OAUTH_REFRESH_TOKEN"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
      | {
          auth:
            | {
                client_email: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                private_key: string
                private_key_id?: string
                scope?: string
                subject?: string
                /**
                 * Format: uri
                 * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
                 */
                token_uri?: string
              }
            | {
                client_email?: string
                /** @enum {boolean} */
                disabled: true
                private_key?: string
                private_key_id?: string
                scope?: string
                subject?: string
                /**
                 * Format: uri
                 * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
                 */
                token_uri?: string
              }
          /**
           * @description A token for what a service account signs. Its key file may be written as it is, as a JSON text in `service_account_key`
           * @enum {string}
           */
          auth_type: "SERVICE_ACCOUNT"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: number | null
          path?: null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          /**
           * Format: uri
           * @description Where to; without a fragment, a user name or a password
           * @example https://api.example.com/hooks
           */
          url: string
        }
    /**
     * @description Delivers to a URL.
     * @example {
     *       "name": "orders-api",
     *       "type": "HTTP",
     *       "config": {
     *         "url": "https://api.example.com/hooks",
     *         "rate_limit": 10,
     *         "rate_limit_period": "second",
     *         "auth_type": "CUSTOM_HEADER",
     *         "auth": {
     *           "header_name": "x-token",
     *           "value": "known-to-the-api"
     *         }
     *       }
     *     }
     */
    HttpDestinationWrite: {
      config: components["schemas"]["HttpDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description HTTP unless told
       * @enum {string}
       */
      type?: "HTTP"
    }
    IgnoredEvent: {
      /** @enum {string} */
      cause:
        | "FILTERED"
        | "TRANSFORMATION_FAILED"
        | "DEDUPLICATED"
        | "HANDSHAKE"
        | "DISABLED"
        | "CLI_DISCONNECTED"
        | "PROCESS_ENDED"
      connection_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      id: string
      meta: unknown
      request_id: string
      source_id: string
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      webhook_id: string
    }
    /**
     * @description Which ignored events: those that the list with the same filters shows.
     * @example {
     *       "from": "now-1h",
     *       "to": "now",
     *       "cause": "TRANSFORMATION_FAILED",
     *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk"
     *     }
     */
    IgnoredEventBulkRetry: {
      /** @description true: whenever it was. Needed where no other member says what the operation is of */
      all?: boolean
      /** @description Only what was ignored for these reasons */
      cause?:
        | (
            | "FILTERED"
            | "TRANSFORMATION_FAILED"
            | "DEDUPLICATED"
            | "HANDSHAKE"
            | "DISABLED"
            | "CLI_DISCONNECTED"
            | "PROCESS_ENDED"
          )
        | (
            | "FILTERED"
            | "TRANSFORMATION_FAILED"
            | "DEDUPLICATED"
            | "HANDSHAKE"
            | "DISABLED"
            | "CLI_DISCONNECTED"
            | "PROCESS_ENDED"
          )[]
      /** @description false: a plan is made, to be looked at, and begins when it is told to run; else it runs at once */
      confirm?: boolean
      /** @description Only of these connections */
      connection_id?: string | string[]
      /** @description Alias of to */
      end?: string
      /** @description Start of the window: ISO 8601, or now-<n><s|m|h|d>; unless told a day before its end, and with `all` none */
      from?: string
      /** @description Targets a second at the most; as many as live traffic leaves unless told */
      rate?: number
      /** @description Only of these requests */
      request_id?: string | string[]
      /** @description Only of these sources */
      source_id?: string | string[]
      /** @description Alias of from */
      start?: string
      /** @description End of the window, at the latest now; now unless told */
      to?: string
      /** @description Alias of connection_id */
      webhook_id?: string | string[]
    }
    /** @description An action of the catalog, instead of a saved one */
    InlineAction: {
      action_key: string
      provider_account_id?: string | null
      provider_key: string
      /** @description 1.0.0 unless told */
      version?: string
    }
    /** @description Creates the transformation, or replaces the one of its name; the rule then names it by its id. */
    InlineTransformRule: {
      transformation: {
        /** @description JavaScript that calls addHandler with what makes one request of another; at most 1 MiB */
        code: string
        /** @description Variables, as process.env and context.env; replaced whole. At most 100, and 64 KiB */
        env?: {
          [key: string]: string
        } | null
        /** @description Printable characters, unique in the team */
        name: string
      }
      /** @enum {string} */
      type: "transform" | "transformation"
    }
    InstantiatedWorkflow: {
      capabilities: components["schemas"]["WorkflowCapabilities"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      edges?: unknown[]
      edges_count: number
      id: string
      name: string
      source: components["schemas"]["WorkflowTrigger"] | null
      /** @description Null: its source was deleted */
      source_id: string | null
      /** @enum {string} */
      status: "draft" | "active" | "paused" | "disabled"
      steps?: unknown[]
      steps_count: number
      team_id: string
      template: {
        key: string
        version: number
      }
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      /** @description One more with every change */
      version: number
    }
    /** @description Decisions of one kind about one key within five minutes. */
    KeyDecisions: {
      /** @description Of calls */
      count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /** @enum {string} */
      decision: "allowed" | "denied" | "rate_limited"
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      first_seen_at: string
      id: number
      key_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      last_seen_at: string
      /** @enum {string} */
      permission: "read" | "edit" | "execute" | "tunnel-connect" | "rotate-secret"
      /** @description Null: it was let in */
      reason:
        | (
            | "scope_missing"
            | "grant_missing"
            | "team_mismatch"
            | "key_disabled"
            | "key_revoked"
            | "rate_limited"
            | "session_required"
            | "legacy_shadow_denied"
          )
        | null
      /** @description Method and path, like POST:/v1/events/:id/retry */
      route_key: string
      team_id: string
    }
    LatestInput: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      input: {
        body: unknown
        headers: {
          [key: string]: string | string[]
        }
        method: string
        path: string
        query: {
          [key: string]: string | string[]
        }
      } | null
      original_event_data_id: string
      payload_key: string
      request_id: string
      source_id: string
    }
    ListedFilter: {
      body: components["schemas"]["Condition"] | null
      conditions: components["schemas"]["FilterConditions"]
      connections_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      headers: components["schemas"]["NamedCondition"] | null
      id: string
      name: string
      path: components["schemas"]["TextCondition"] | null
      query: components["schemas"]["NamedCondition"] | null
      sample_connection_id: string | null
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      workflow_steps_count: number
    }
    ListedShare: {
      access_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      expires_at: string
      id: string
      last_accessed_at: string | null
      request_id: string
      revoked_at: string | null
      /**
       * @description expired and revoked ones are listed for 7 days after their `expires_at`
       * @enum {string}
       */
      status: "active" | "expired" | "revoked"
      team_id: string
      title: string | null
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    Login: {
      /** @description Alias of id_token */
      credential?: string
      /** @description An OpenID Connect ID token of the configured issuer */
      id_token?: string
      /** @description The nonce that the token was asked for with; given, the token has to have it */
      nonce?: string
      /** @description What calls of the session act on that name no team; one of the user's */
      team_id?: string
    }
    MailboxEmailDestinationConfig:
      | {
          auth:
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id: string
                client_secret: string
                code?: string
                code_verifier?: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id?: string
                client_secret?: string
                code?: string
                code_verifier?: string
                /** @enum {boolean} */
                disabled: true
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token that somebody has consented to: at the gateway's request, or elsewhere
           * @enum {string}
           */
          auth_type: "OAUTH2_AUTHORIZATION_CODE"
          bcc?: (string | string[]) | null
          cc?: (string | string[]) | null
          html_template?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          reply_to?: string | null
          subject?: string | null
          text_template?: string | null
          /** @description Addresses or templates, each of one address; at most 10 in to, cc and bcc together */
          to: string | string[]
        }
      | {
          auth:
            | {
                client_id: string
                client_secret: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                refresh_token: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                client_id?: string
                client_secret?: string
                /** @enum {boolean} */
                disabled: true
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token for a refresh token that somebody has given the gateway
           * @enum {string}
           */
          auth_type: "OAUTH_REFRESH_TOKEN"
          bcc?: (string | string[]) | null
          cc?: (string | string[]) | null
          html_template?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          reply_to?: string | null
          subject?: string | null
          text_template?: string | null
          /** @description Addresses or templates, each of one address; at most 10 in to, cc and bcc together */
          to: string | string[]
        }
    /**
     * @description Sends an e-mail from a mailbox (Gmail).
     * @example {
     *       "name": "mail-from-ops",
     *       "type": "MAILBOX_EMAIL",
     *       "config": {
     *         "to": "ops@example.com",
     *         "text_template": "Order {{payload.id}} has arrived",
     *         "auth_type": "OAUTH_REFRESH_TOKEN",
     *         "auth": {
     *           "client_id": "0000.apps.googleusercontent.com",
     *           "client_secret": "secret-of-the-client",
     *           "refresh_token": "1//token-of-the-account",
     *           "token_url": "https://oauth2.googleapis.com/token"
     *         }
     *       }
     *     }
     */
    MailboxEmailDestinationWrite: {
      config: components["schemas"]["MailboxEmailDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MAILBOX_EMAIL"
    }
    /** @description What somebody is to a team. */
    Membership: {
      /** @enum {string} */
      role: "owner" | "member"
      team_id: string
    }
    MessagingChatDestinationConfig: {
      auth:
        | {
            account_sid: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            account_sid?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The account of a messaging API and its token
       * @enum {string}
       */
      auth_type: "MESSAGING_AUTH_TOKEN"
      body_template?: string | null
      content_sid?: string | null
      content_variables?: string | null
      from?: string | null
      messaging_service_sid?: string | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      to: string
    }
    /**
     * @description Sends a chat message (Twilio, WhatsApp and kin).
     * @example {
     *       "name": "chat",
     *       "type": "MESSAGING_CHAT",
     *       "config": {
     *         "to": "whatsapp:+15005550006",
     *         "from": "whatsapp:+15005550001",
     *         "body_template": "{{payload.message}}",
     *         "auth_type": "MESSAGING_AUTH_TOKEN",
     *         "auth": {
     *           "account_sid": "AC00000000000000000000000000000000",
     *           "auth_token": "token"
     *         }
     *       }
     *     }
     */
    MessagingChatDestinationWrite: {
      config: components["schemas"]["MessagingChatDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MESSAGING_CHAT"
    }
    MessagingMmsDestinationConfig: {
      auth:
        | {
            account_sid: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            account_sid?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The account of a messaging API and its token
       * @enum {string}
       */
      auth_type: "MESSAGING_AUTH_TOKEN"
      body_template: string
      from?: string | null
      /** @description Public URLs or templates of them, like {{payload.media_url}} */
      media_urls: string[]
      messaging_service_sid?: string | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      to: string
    }
    /**
     * @description Sends a text message with media (Twilio), which the API fetches from their URLs.
     * @example {
     *       "name": "mms",
     *       "type": "MESSAGING_MMS",
     *       "config": {
     *         "to": "+15005550006",
     *         "from": "+15005550001",
     *         "body_template": "{{payload.message}}",
     *         "auth_type": "MESSAGING_AUTH_TOKEN",
     *         "auth": {
     *           "account_sid": "AC00000000000000000000000000000000",
     *           "auth_token": "token"
     *         },
     *         "media_urls": [
     *           "{{payload.media_url}}"
     *         ]
     *       }
     *     }
     */
    MessagingMmsDestinationWrite: {
      config: components["schemas"]["MessagingMmsDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MESSAGING_MMS"
    }
    MessagingSmsDestinationConfig: {
      auth:
        | {
            account_sid: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            account_sid?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            auth_token?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The account of a messaging API and its token
       * @enum {string}
       */
      auth_type: "MESSAGING_AUTH_TOKEN"
      body_template: string
      from?: string | null
      messaging_service_sid?: string | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      to: string
    }
    /**
     * @description Sends a text message (Twilio).
     * @example {
     *       "name": "sms",
     *       "type": "MESSAGING_SMS",
     *       "config": {
     *         "to": "+15005550006",
     *         "from": "+15005550001",
     *         "body_template": "{{payload.message}}",
     *         "auth_type": "MESSAGING_AUTH_TOKEN",
     *         "auth": {
     *           "account_sid": "AC00000000000000000000000000000000",
     *           "auth_token": "token"
     *         }
     *       }
     *     }
     */
    MessagingSmsDestinationWrite: {
      config: components["schemas"]["MessagingSmsDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MESSAGING_SMS"
    }
    MessengerMessageDestinationConfig: {
      auth:
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token: string
            /** @description true: as if there were no auth */
            disabled?: boolean
          }
        | {
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            bot_token?: string
            /** @enum {boolean} */
            disabled: true
          }
      /**
       * @description The token of a bot
       * @enum {string}
       */
      auth_type: "CHAT_BOT_TOKEN"
      chat_id: string
      disable_link_previews?: boolean | null
      disable_notification?: boolean | null
      parse_mode?: ("HTML" | "MarkdownV2") | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      text_template: string
    }
    /**
     * @description Sends a message to a chat as a bot (Telegram).
     * @example {
     *       "name": "ops-chat",
     *       "type": "MESSENGER_MESSAGE",
     *       "config": {
     *         "chat_id": "-1001234567890",
     *         "text_template": "Order {{payload.id}} has arrived",
     *         "auth_type": "CHAT_BOT_TOKEN",
     *         "auth": {
     *           "bot_token": "123456:token"
     *         }
     *       }
     *     }
     */
    MessengerMessageDestinationWrite: {
      config: components["schemas"]["MessengerMessageDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MESSENGER_MESSAGE"
    }
    MockApiDestinationConfig:
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          auth_type?: "NO_AUTH" | null
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: "https://mock.invalid/" | null
        }
      | {
          auth?: {
            /** @description true: as if there were no auth */
            disabled?: boolean
          } | null
          /**
           * @description Signed with the team's secret: webhook-id, webhook-timestamp, webhook-signature
           * @enum {string}
           */
          auth_type: "SERVICE_SIGNATURE"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: "https://mock.invalid/" | null
        }
      | {
          auth:
            | {
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value: string
              }
            | {
                /** @enum {boolean} */
                disabled: true
                /**
                 * @description None that HTTP or the gateway sets
                 * @example x-token
                 */
                header_name?: string
                /** @description The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it */
                value?: string
              }
          /** @enum {string} */
          auth_type: "CUSTOM_HEADER"
          forward_credentials?: boolean | null
          http_method?: ("POST" | "PUT" | "PATCH" | "DELETE") | null
          max_concurrency?: null
          path?: string | null
          path_forwarding_disabled?: boolean | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          url?: "https://mock.invalid/" | null
        }
    /**
     * @description Delivers to nobody: it answers 200, and echoes.
     * @example {
     *       "name": "mock",
     *       "type": "MOCK_API"
     *     }
     */
    MockApiDestinationWrite: {
      config?: components["schemas"]["MockApiDestinationConfig"] | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "MOCK_API"
    }
    /** @description What headers or a query have to meet: conditions by name, and operators. */
    NamedCondition: unknown[] | components["schemas"]["ConditionOperators"]
    /** @description A key that has just been made. */
    NewProjectKey: {
      /** @description The key itself, shown this once */
      api_key: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /** @description Null: it is the team's API key */
      created_by_user_id: string | null
      /** @description The routes that it may execute, where it has control:execute */
      execute_grants: string[]
      id: string
      /** @description Exact to a minute */
      last_used_at: string | null
      /** @description Whether it is the API key of /project-secrets */
      legacy_project_secret: boolean
      /** @description What it begins with; the rest is known to nobody here */
      masked_key: string
      name: string
      rate_limit_per_minute: number
      revoked_at: string | null
      /** @description None implies another */
      scopes: ("control:read" | "control:edit" | "control:execute" | "tunnel:connect")[]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      secret_last_rotated_at: string
      /**
       * @description Revoked is for ever
       * @enum {string}
       */
      status: "active" | "disabled" | "revoked"
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    NewPublicBin: {
      /** @description What senders send to */
      endpoint: string
      /**
       * Format: date-time
       * @description When it ends, unless it is claimed
       * @example 2026-01-01T00:00:00.000Z
       */
      expires_at: string
      id: string
      /** @description Shown this once; sent as `x-bin-token: <token>` */
      token: string
      /** @description How long a bin lives */
      ttl_seconds: number
    }
    /** @description A session that has just begun. */
    NewSession: {
      active_team_id: string
      memberships: components["schemas"]["Membership"][]
      session: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        expires_at: string
      }
      /** @description Shown this once; sent as `Authorization: Bearer <token>` */
      token: string
      user: components["schemas"]["User"]
    }
    NoEventReason: {
      /** @enum {string} */
      code: "REJECTED" | "IGNORED" | "DISABLED" | "NO_CONNECTION" | "PENDING"
      message: string
    }
    ObjectStoreRDestinationConfig: {
      /** @example 0123456789abcdef0123456789abcdef */
      account_id: string
      auth:
        | {
            access_key_id: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            access_key_id?: string
            /** @enum {boolean} */
            disabled: true
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
      /**
       * @description An access key of an R2 account: calls are signed with it; a session token goes with temporary ones
       * @enum {string}
       */
      auth_type: "OBJECT_STORE_R_ACCESS_KEY"
      body_template?: string | null
      /** @example webhook-archive */
      bucket: string
      content_type?: string | null
      endpoint?: string | null
      include_metadata?: boolean | null
      key_template?: string | null
      max_concurrency?: number | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /**
     * @description Stores each event as an object (Cloudflare R2).
     * @example {
     *       "name": "archive",
     *       "type": "OBJECT_STORE_R",
     *       "config": {
     *         "account_id": "0123456789abcdef0123456789abcdef",
     *         "bucket": "webhook-archive",
     *         "auth_type": "OBJECT_STORE_R_ACCESS_KEY",
     *         "auth": {
     *           "access_key_id": "AKIA0000000000000000",
     *           "secret_access_key": "secret"
     *         }
     *       }
     *     }
     */
    ObjectStoreRDestinationWrite: {
      config: components["schemas"]["ObjectStoreRDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "OBJECT_STORE_R"
    }
    ObjectStoreSDestinationConfig: {
      auth:
        | {
            access_key_id: string
            /** @description true: as if there were no auth */
            disabled?: boolean
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
        | {
            access_key_id?: string
            /** @enum {boolean} */
            disabled: true
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            secret_access_key?: string
            /** @description Encrypted at rest, masked on read; writing the mask back keeps it */
            session_token?: string
          }
      /**
       * @description An access key that may put objects: calls are signed with it; a session token goes with temporary ones
       * @enum {string}
       */
      auth_type: "OBJECT_STORE_S_ACCESS_KEY"
      body_template?: string | null
      /** @example webhook-archive */
      bucket: string
      content_type?: string | null
      endpoint?: string | null
      force_path_style?: boolean | null
      include_metadata?: boolean | null
      key_template?: string | null
      max_concurrency?: number | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      /**
       * @description The bucket's region, which signatures name
       * @example eu-central-1
       */
      region: string
    }
    /**
     * @description Stores each event as an object (Amazon S3 and kin).
     * @example {
     *       "name": "archive",
     *       "type": "OBJECT_STORE_S",
     *       "config": {
     *         "region": "eu-central-1",
     *         "bucket": "webhook-archive",
     *         "auth_type": "OBJECT_STORE_S_ACCESS_KEY",
     *         "auth": {
     *           "access_key_id": "AKIA0000000000000000",
     *           "secret_access_key": "secret"
     *         }
     *       }
     *     }
     */
    ObjectStoreSDestinationWrite: {
      config: components["schemas"]["ObjectStoreSDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "OBJECT_STORE_S"
    }
    /** @description Accepts everybody. */
    OpenSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth?: Record<string, unknown> | null
      auth_type?: null
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Accepts everybody. */
    OpenSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth?: Record<string, unknown> | null
      auth_type?: null
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /**
     * @example {
     *       "key": "body.customer.id",
     *       "on_failure": "block"
     *     }
     */
    Ordering: {
      /** @description A path to one value of the request as it came, in its body, headers or query */
      key: string
      /**
       * @description What those behind an event do that has failed and will be tried again: wait for it (`block`, the default), or go on (`skip`)
       * @enum {string}
       */
      on_failure?: "block" | "skip"
    }
    OwnTeam: {
      id: string
      name: string
      /** @enum {string} */
      role: "owner" | "member"
    }
    PayloadPreview: {
      available: boolean
      content_type: string | null
      preview: unknown
      /** @description Why there is no preview */
      reason: ("expired" | "too_large" | "unavailable" | "binary" | "not_captured") | null
      redacted: boolean
      redacted_paths: string[]
      sha256: string | null
      size_bytes: number | null
      truncated: boolean
    }
    ProfileWrite: {
      /** @description 1 to 120 characters that can be seen. Spaces around it are left out */
      name: string
    }
    /** @description A key of a team, without what it is recognised by. */
    ProjectKey: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /** @description Null: it is the team's API key */
      created_by_user_id: string | null
      /** @description The routes that it may execute, where it has control:execute */
      execute_grants: string[]
      id: string
      /** @description Exact to a minute */
      last_used_at: string | null
      /** @description Whether it is the API key of /project-secrets */
      legacy_project_secret: boolean
      /** @description What it begins with; the rest is known to nobody here */
      masked_key: string
      name: string
      rate_limit_per_minute: number
      revoked_at: string | null
      /** @description None implies another */
      scopes: ("control:read" | "control:edit" | "control:execute" | "tunnel:connect")[]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      secret_last_rotated_at: string
      /**
       * @description Revoked is for ever
       * @enum {string}
       */
      status: "active" | "disabled" | "revoked"
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    ProjectKeyPatch: {
      /** @description The routes that it may execute, like POST:/v1/events/:id/retry; needs control:execute. None: it executes nothing */
      execute_grants?: string[]
      /** @description For people; need not be unique. Spaces around it are left out */
      name?: string
      /** @description Calls a minute; 240 unless told */
      rate_limit_per_minute?: number
      /** @description Each once; none implies another */
      scopes?: ("control:read" | "control:edit" | "control:execute" | "tunnel:connect")[]
      /**
       * @description Disabled, it is let in nowhere
       * @enum {string}
       */
      status?: "active" | "disabled"
    }
    ProjectKeyWrite: {
      /** @description The routes that it may execute, like POST:/v1/events/:id/retry; needs control:execute. None: it executes nothing */
      execute_grants?: string[]
      /** @description For people; need not be unique. Spaces around it are left out */
      name: string
      /** @description Calls a minute; 240 unless told */
      rate_limit_per_minute?: number
      /** @description Each once; none implies another */
      scopes: ("control:read" | "control:edit" | "control:execute" | "tunnel:connect")[]
    }
    ProjectSecret: {
      has_secret: boolean
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      last_rotated_at: string
      /** @description Its prefix and its last four characters */
      masked_value: string
    }
    /** @description The team's API key and signing secret. */
    ProjectSecrets: {
      api_key: components["schemas"]["ProjectSecret"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      signing_secret: components["schemas"]["ProjectSecret"]
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    ProjectSecretsRotate: {
      /** @description Which; both unless told */
      rotate?: ("api_key" | "signing_secret")[]
    }
    ProjectSecretsWrite: {
      /** @description At least 12 characters; the former one is dead at once */
      api_key?: string
      /** @description At least 12 characters; deliveries are signed by the former one too, for 24 hours */
      signing_secret?: string
    }
    ProviderApiKeyAuth: {
      /** @description Encrypted at rest, masked on read */
      api_key: string
    }
    ProviderApiKeyOptionalHeaderKeyAuth: {
      /** @description Encrypted at rest, masked on read */
      api_key: string
      header_key?: string | null
    }
    ProviderApiKeyOptionalHeaderKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderApiKeyOptionalHeaderKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "API_KEY" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderApiKeyOptionalHeaderKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderApiKeyOptionalHeaderKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "API_KEY" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types OKTA. */
    ProviderApiKeyOptionalHeaderKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderApiKeyOptionalHeaderKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["HmacSourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "OKTA"
      url?: string | null
    }
    /** @description Sources of the types OKTA. */
    ProviderApiKeyOptionalHeaderKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderApiKeyOptionalHeaderKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["HmacSourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "OKTA"
      url?: string | null
    }
    ProviderApiKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderApiKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "API_KEY" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderApiKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderApiKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "API_KEY" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types GITLAB, TELEGRAM, DEEPGRAM, MICROSOFT_GRAPH. */
    ProviderApiKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderApiKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["HmacSourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "GITLAB" | "TELEGRAM" | "DEEPGRAM" | "MICROSOFT_GRAPH"
      url?: string | null
    }
    /** @description Sources of the types GITLAB, TELEGRAM, DEEPGRAM, MICROSOFT_GRAPH. */
    ProviderApiKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderApiKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["HmacSourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "GITLAB" | "TELEGRAM" | "DEEPGRAM" | "MICROSOFT_GRAPH"
      url?: string | null
    }
    ProviderOptionalTopicArnAuth: {
      topic_arn?: string | null
    }
    ProviderOptionalTopicArnSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalTopicArnAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderOptionalTopicArnSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalTopicArnAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types AWS_SNS. */
    ProviderOptionalTopicArnSourceWrite: {
      config?:
        | components["schemas"]["ProviderOptionalTopicArnSourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "AWS_SNS"
      url?: string | null
    }
    /** @description Sources of the types AWS_SNS. */
    ProviderOptionalTopicArnSourceWrite_1: {
      config?:
        | components["schemas"]["ProviderOptionalTopicArnSourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "AWS_SNS"
      url?: string | null
    }
    ProviderOptionalWebhookSecretKeyAuth: {
      webhook_secret_key?: string | null
    }
    ProviderOptionalWebhookSecretKeyOptionalPublicKeyAuth: {
      public_key?: string | null
      webhook_secret_key?: string | null
    }
    ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types FUSIONAUTH. */
    ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "FUSIONAUTH"
      url?: string | null
    }
    /** @description Sources of the types FUSIONAUTH. */
    ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "FUSIONAUTH"
      url?: string | null
    }
    ProviderOptionalWebhookSecretKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalWebhookSecretKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderOptionalWebhookSecretKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderOptionalWebhookSecretKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types NOTION, ASANA. */
    ProviderOptionalWebhookSecretKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderOptionalWebhookSecretKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "NOTION" | "ASANA"
      url?: string | null
    }
    /** @description Sources of the types NOTION, ASANA. */
    ProviderOptionalWebhookSecretKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderOptionalWebhookSecretKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "NOTION" | "ASANA"
      url?: string | null
    }
    ProviderPublicKeyAuth: {
      public_key: string
    }
    ProviderPublicKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderPublicKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderPublicKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderPublicKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types DISCORD, DISCORD_EVENTS, SENDGRID. */
    ProviderPublicKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderPublicKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "DISCORD" | "DISCORD_EVENTS" | "SENDGRID"
      url?: string | null
    }
    /** @description Sources of the types DISCORD, DISCORD_EVENTS, SENDGRID. */
    ProviderPublicKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderPublicKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "DISCORD" | "DISCORD_EVENTS" | "SENDGRID"
      url?: string | null
    }
    ProviderUsernamePasswordAuth: {
      /** @description Encrypted at rest, masked on read */
      password: string
      username: string
    }
    ProviderUsernamePasswordSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderUsernamePasswordAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "BASIC_AUTH" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderUsernamePasswordSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderUsernamePasswordAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "BASIC_AUTH" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types POSTMARK, CHARGEBEE. */
    ProviderUsernamePasswordSourceWrite: {
      config?:
        | components["schemas"]["ProviderUsernamePasswordSourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | components["schemas"]["HmacSourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "POSTMARK" | "CHARGEBEE"
      url?: string | null
    }
    /** @description Sources of the types POSTMARK, CHARGEBEE. */
    ProviderUsernamePasswordSourceWrite_1: {
      config?:
        | components["schemas"]["ProviderUsernamePasswordSourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | components["schemas"]["HmacSourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "POSTMARK" | "CHARGEBEE"
      url?: string | null
    }
    ProviderWebhookIdAuth: {
      webhook_id: string
    }
    ProviderWebhookIdSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookIdAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderWebhookIdSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookIdAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types PAYPAL. */
    ProviderWebhookIdSourceWrite: {
      config?:
        | components["schemas"]["ProviderWebhookIdSourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "PAYPAL"
      url?: string | null
    }
    /** @description Sources of the types PAYPAL. */
    ProviderWebhookIdSourceWrite_1: {
      config?:
        | components["schemas"]["ProviderWebhookIdSourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "PAYPAL"
      url?: string | null
    }
    ProviderWebhookSecretKeyAuth: {
      /** @description Encrypted at rest, masked on read */
      webhook_secret_key: string
    }
    ProviderWebhookSecretKeyOptionalVerifyTokenAuth: {
      verify_token?: string | null
      /** @description Encrypted at rest, masked on read */
      webhook_secret_key: string
    }
    ProviderWebhookSecretKeyOptionalVerifyTokenSourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderWebhookSecretKeyOptionalVerifyTokenSourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types META, WHATSAPP. */
    ProviderWebhookSecretKeyOptionalVerifyTokenSourceWrite: {
      config?:
        | components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenSourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "META" | "WHATSAPP"
      url?: string | null
    }
    /** @description Sources of the types META, WHATSAPP. */
    ProviderWebhookSecretKeyOptionalVerifyTokenSourceWrite_1: {
      config?:
        | components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenSourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type: "META" | "WHATSAPP"
      url?: string | null
    }
    ProviderWebhookSecretKeySourceConfig: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookSecretKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    ProviderWebhookSecretKeySourceConfig_1: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth: components["schemas"]["ProviderWebhookSecretKeyAuth"]
      /**
       * @description May be left out: the type says it
       * @enum {string}
       */
      auth_type?: "HMAC" | "PROVIDER_SIGNATURE"
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description Sources of the types GITHUB, BITBUCKET, INTERCOM, CURSOR, CIRCLECI, PAGERDUTY, DROPBOX, RAZORPAY, COINBASE_COMMERCE, LEMON_SQUEEZY, SENTRY, GOCARDLESS, LAUNCHDARKLY, CHECKOUT_COM, PAYSTACK, VERCEL, WEBEX, SHOPIFY, LINE, DOCUSIGN, TYPEFORM, XERO, WOO_COMMERCE, HEROKU, SQUARE, TRELLO, MICROSOFT_TEAMS, STRIPE, CALENDLY, MUX, WORKOS, ELEVENLABS, PADDLE, BUILDKITE, SVIX, CLERK, RESEND, STANDARD, STANDARD_WEBHOOKS, REPLICATE, OPENAI, SLACK, ZOOM, WEBFLOW, ZENDESK, HUBSPOT, TWITCH, LINEAR, TWILIO, MAILGUN, MAILCHIMP. */
    ProviderWebhookSecretKeySourceWrite: {
      config?:
        | components["schemas"]["ProviderWebhookSecretKeySourceConfig"]
        | components["schemas"]["OpenSourceConfig"]
        | components["schemas"]["BasicAuthSourceConfig"]
        | components["schemas"]["ApiKeySourceConfig"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type:
        | "GITHUB"
        | "BITBUCKET"
        | "INTERCOM"
        | "CURSOR"
        | "CIRCLECI"
        | "PAGERDUTY"
        | "DROPBOX"
        | "RAZORPAY"
        | "COINBASE_COMMERCE"
        | "LEMON_SQUEEZY"
        | "SENTRY"
        | "GOCARDLESS"
        | "LAUNCHDARKLY"
        | "CHECKOUT_COM"
        | "PAYSTACK"
        | "VERCEL"
        | "WEBEX"
        | "SHOPIFY"
        | "LINE"
        | "DOCUSIGN"
        | "TYPEFORM"
        | "XERO"
        | "WOO_COMMERCE"
        | "HEROKU"
        | "SQUARE"
        | "TRELLO"
        | "MICROSOFT_TEAMS"
        | "STRIPE"
        | "CALENDLY"
        | "MUX"
        | "WORKOS"
        | "ELEVENLABS"
        | "PADDLE"
        | "BUILDKITE"
        | "SVIX"
        | "CLERK"
        | "RESEND"
        | "STANDARD"
        | "STANDARD_WEBHOOKS"
        | "REPLICATE"
        | "OPENAI"
        | "SLACK"
        | "ZOOM"
        | "WEBFLOW"
        | "ZENDESK"
        | "HUBSPOT"
        | "TWITCH"
        | "LINEAR"
        | "TWILIO"
        | "MAILGUN"
        | "MAILCHIMP"
      url?: string | null
    }
    /** @description Sources of the types GITHUB, BITBUCKET, INTERCOM, CURSOR, CIRCLECI, PAGERDUTY, DROPBOX, RAZORPAY, COINBASE_COMMERCE, LEMON_SQUEEZY, SENTRY, GOCARDLESS, LAUNCHDARKLY, CHECKOUT_COM, PAYSTACK, VERCEL, WEBEX, SHOPIFY, LINE, DOCUSIGN, TYPEFORM, XERO, WOO_COMMERCE, HEROKU, SQUARE, TRELLO, MICROSOFT_TEAMS, STRIPE, CALENDLY, MUX, WORKOS, ELEVENLABS, PADDLE, BUILDKITE, SVIX, CLERK, RESEND, STANDARD, STANDARD_WEBHOOKS, REPLICATE, OPENAI, SLACK, ZOOM, WEBFLOW, ZENDESK, HUBSPOT, TWITCH, LINEAR, TWILIO, MAILGUN, MAILCHIMP. */
    ProviderWebhookSecretKeySourceWrite_1: {
      config?:
        | components["schemas"]["ProviderWebhookSecretKeySourceConfig_1"]
        | components["schemas"]["OpenSourceConfig_1"]
        | components["schemas"]["BasicAuthSourceConfig_1"]
        | components["schemas"]["ApiKeySourceConfig_1"]
        | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      /** @enum {string} */
      type:
        | "GITHUB"
        | "BITBUCKET"
        | "INTERCOM"
        | "CURSOR"
        | "CIRCLECI"
        | "PAGERDUTY"
        | "DROPBOX"
        | "RAZORPAY"
        | "COINBASE_COMMERCE"
        | "LEMON_SQUEEZY"
        | "SENTRY"
        | "GOCARDLESS"
        | "LAUNCHDARKLY"
        | "CHECKOUT_COM"
        | "PAYSTACK"
        | "VERCEL"
        | "WEBEX"
        | "SHOPIFY"
        | "LINE"
        | "DOCUSIGN"
        | "TYPEFORM"
        | "XERO"
        | "WOO_COMMERCE"
        | "HEROKU"
        | "SQUARE"
        | "TRELLO"
        | "MICROSOFT_TEAMS"
        | "STRIPE"
        | "CALENDLY"
        | "MUX"
        | "WORKOS"
        | "ELEVENLABS"
        | "PADDLE"
        | "BUILDKITE"
        | "SVIX"
        | "CLERK"
        | "RESEND"
        | "STANDARD"
        | "STANDARD_WEBHOOKS"
        | "REPLICATE"
        | "OPENAI"
        | "SLACK"
        | "ZOOM"
        | "WEBFLOW"
        | "ZENDESK"
        | "HUBSPOT"
        | "TWITCH"
        | "LINEAR"
        | "TWILIO"
        | "MAILGUN"
        | "MAILCHIMP"
      url?: string | null
    }
    ProxyExchange: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      error_code: string | null
      error_text: string | null
      http_method: string
      id: string
      request_id: string
      responded_at: string | null
      response_body: string | null
      /** @enum {string} */
      response_body_encoding: "text" | "base64"
      response_body_truncated: boolean
      response_headers: {
        [key: string]: string | string[]
      } | null
      response_latency: number | null
      response_status: number | null
      source_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      started_at: string
      target_url: string
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    /** @description The API whose answer the senders get. */
    ProxySettings: {
      capture_response_bytes?: number | null
      enabled?: boolean | null
      forward_credentials?: boolean | null
      path_forwarding?: boolean | null
      query_forwarding?: boolean | null
      /**
       * Format: uri
       * @example https://api.example.com/base
       */
      target_url: string
      timeout_ms?: number | null
    }
    PublicBin: {
      /** @description What senders send to */
      endpoint: string
      /**
       * Format: date-time
       * @description When it ends, unless it is claimed
       * @example 2026-01-01T00:00:00.000Z
       */
      expires_at: string
      id: string
      /** @description Of the older ones; null: there are none */
      next_cursor: string | null
      requests: components["schemas"]["CapturedRequest"][]
      /** @description How long a bin lives */
      ttl_seconds: number
    }
    PublicShare: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      expires_at: string
      request: components["schemas"]["SharedRequest"]
      /** @enum {boolean} */
      sanitized: true
      title: string | null
    }
    /** @description The request is stored. A source may answer something else instead. */
    Receipt: {
      /** @enum {boolean} */
      ok: true
      /** @enum {boolean} */
      queued: true
      request_id: string
      /** @enum {string} */
      transport: "queue"
    }
    /** @description replay_request_id is the new request, request_id the one it repeats. */
    ReplayAccepted: {
      /** @enum {boolean} */
      ok: true
      original_rejection_cause: string | null
      /** @enum {boolean} */
      queued: true
      replay_message_id: string
      /** @enum {string} */
      replay_mode: "exact" | "modified"
      replay_request_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      replayed_at: string
      request_id: string
      source_id: string
      /** @enum {string} */
      transport: "queue"
    }
    /**
     * @description What is different; nothing is an exact replay. May also stand in `modifications`.
     * @example {
     *       "headers": {
     *         "x-replayed-by": "support"
     *       },
     *       "body": {
     *         "type": "order.created",
     *         "id": 2
     *       }
     *     }
     */
    ReplayRequest: {
      /** @description A text is sent as it is, anything else as JSON */
      body?: unknown
      /**
       * @description The connections that it goes to; all of the source unless told
       * @example [
       *       "web_01kak1x7p8e5z1h4g9f7d6c8jk"
       *     ]
       */
      connection_ids?: string[]
      /** @description Laid over the original ones; null takes one out */
      headers?: {
        [key: string]: string | string[] | null
      }
      /** @enum {string} */
      method?: "GET" | "QUERY" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"
      /** @description Another place for what is different */
      modifications?: {
        /** @description A text is sent as it is, anything else as JSON */
        body?: unknown
        /** @description Laid over the original ones; null takes one out */
        headers?: {
          [key: string]: string | string[] | null
        }
        /** @enum {string} */
        method?: "GET" | "QUERY" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"
        /** @description What follows the source's URL */
        path?: string
        /** @description A query string or an object; in place of the original one */
        query?:
          | string
          | {
              [key: string]: string | number | boolean | null | (string | number | boolean | null)[]
            }
      }
      /** @description What follows the source's URL */
      path?: string
      /** @description A query string or an object; in place of the original one */
      query?:
        | string
        | {
            [key: string]: string | number | boolean | null | (string | number | boolean | null)[]
          }
      /** @description Another place for what is different */
      replay?: {
        /** @description A text is sent as it is, anything else as JSON */
        body?: unknown
        /** @description Laid over the original ones; null takes one out */
        headers?: {
          [key: string]: string | string[] | null
        }
        /** @enum {string} */
        method?: "GET" | "QUERY" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"
        /** @description What follows the source's URL */
        path?: string
        /** @description A query string or an object; in place of the original one */
        query?:
          | string
          | {
              [key: string]: string | number | boolean | null | (string | number | boolean | null)[]
            }
      }
      /** @description Another place for what is different */
      request?: {
        /** @description A text is sent as it is, anything else as JSON */
        body?: unknown
        /** @description Laid over the original ones; null takes one out */
        headers?: {
          [key: string]: string | string[] | null
        }
        /** @enum {string} */
        method?: "GET" | "QUERY" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"
        /** @description What follows the source's URL */
        path?: string
        /** @description A query string or an object; in place of the original one */
        query?:
          | string
          | {
              [key: string]: string | number | boolean | null | (string | number | boolean | null)[]
            }
      }
    }
    Request: {
      cli_events_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      data?: components["schemas"]["RequestData"] | null
      event_summary?: {
        total: number
      } & {
        [key: string]: number
      }
      events_count: number
      external_id: string | null
      id: string
      ignored_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      ingested_at: string
      is_retry: boolean
      original_event_data_id: string
      proxy_exchange?: components["schemas"]["ProxyExchange"] | null
      rejection_cause: string | null
      retried_at: string | null
      retry_kind: ("single" | "bulk") | null
      retry_operation_id: string | null
      retry_parent_request_id: string | null
      source_id: string
      /** @enum {string} */
      status: "accepted" | "rejected"
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      verified: boolean
    }
    /**
     * @description Which requests: those that the list with the same filters shows.
     * @example {
     *       "from": "now-1h",
     *       "to": "now",
     *       "status": "rejected",
     *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh"
     *     }
     */
    RequestBulkRetry: {
      /** @description true: whenever it was. Needed where no other member says what the operation is of */
      all?: boolean
      /** @description The bulk operation that made them */
      batch_operation_id?: string
      /** @description Alias of batch_operation_id */
      bulk_operation_id?: string
      /** @description false: a plan is made, to be looked at, and begins when it is told to run; else it runs at once */
      confirm?: boolean
      /** @description Only requests that went to these connections */
      connection_id?: string | string[]
      /** @description Alias of to */
      end?: string
      /** @description Start of the window: ISO 8601, or now-<n><s|m|h|d>; unless told a day before its end, and with `all` none */
      from?: string
      /** @description Whether it is a retry, or a replay */
      is_retry?: boolean
      /** @description Looks for this in ids and further fields */
      q?: string
      /** @description Targets a second at the most; as many as live traffic leaves unless told */
      rate?: number
      /** @description Only requests that were rejected for these causes */
      rejection_cause?: string | string[]
      /**
       * @description Only retries of one, or of a bulk operation
       * @enum {string}
       */
      retry_kind?: "single" | "bulk"
      /** @description Alias of q */
      search?: string
      /** @description Alias of q */
      search_term?: string
      /** @description Only requests of these sources */
      source_id?: string | string[]
      /** @description Alias of from */
      start?: string
      /** @description Only those that were let in, or were not */
      status?: ("accepted" | "rejected") | ("accepted" | "rejected")[]
      /** @description End of the window, at the latest now; now unless told */
      to?: string
      /** @description Whether verification ran and passed */
      verified?: boolean
      /** @description Alias of connection_id */
      webhook_id?: string | string[]
    }
    RequestCount: {
      applied_range: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        from: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        to: string
      }
      count: number
      partial: boolean
      total: number
      total_exact: boolean
      unavailable_shard_count: number
    }
    RequestData: {
      body: unknown
      content_type: string | null
      /** @enum {string} */
      encoding: "json" | "text" | "base64"
      headers: {
        [key: string]: string | string[]
      }
      is_large_payload: boolean
      method: string
      parsed_query: {
        [key: string]: string | string[]
      }
      path: string
      query: string
      reason?: string
      size_bytes: number
    }
    RequestSample: {
      body?: unknown
      headers?: {
        [key: string]: string | string[]
      }
      /**
       * @description POST unless told
       * @enum {string}
       */
      method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"
      /** @description / unless told */
      path?: string
      /** @description A query string or an object; the answer has it in the same form */
      query?:
        | string
        | {
            [key: string]: string | number | boolean | null | (string | number | boolean | null)[]
          }
    }
    RequestSeries: {
      date_range: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        end: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        start: string
      }
      /** @enum {string} */
      granularity: "1s" | "5s" | "10s" | "30s" | "1m" | "5m" | "15m" | "1h"
      partial: boolean
      series: {
        accepted_count?: number
        count?: number
        rejected_count?: number
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        timestamp: string
      }[]
      unavailable_shard_count: number
    }
    ResourceEvidence: {
      content_hash: string | null
      /** @description Whether it is still there */
      exists: boolean
      id: string
      name: string | null
      step_id: string
      type: string
      updated_at: string | null
    }
    RetriedStep: {
      id: string
      /** @description What this retry is known by */
      retry_outbox_id: string
      retry_step: {
        name: string
        step_id: string
      }
      /** @enum {string} */
      status: "queued"
      workflow_id: string
      workflow_version: number
    }
    /** @description replay_event_id is the new event, event_id the one it repeats. */
    RetryAccepted: {
      event_id: string
      /** @enum {boolean} */
      ok: true
      /** @enum {boolean} */
      queued: true
      replay_event_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      retried_at: string
      /** @enum {string} */
      transport: "queue"
    }
    RetryRule: {
      /** @description Retries after the first attempt; 5 unless told */
      count?: number
      /** @description Milliseconds to the first retry; with `exponential` each wait is twice the one before. 60000 unless told */
      interval?: number
      /**
       * @description Which answers are tried again; a leading ! excludes. Without it, every one that is not 2xx
       * @example [
       *       "429",
       *       "500-599",
       *       ">=500",
       *       "!501"
       *     ]
       */
      response_status_codes?: (string | number)[]
      /**
       * @description exponential unless told
       * @enum {string}
       */
      strategy?: "linear" | "exponential"
      /** @enum {string} */
      type: "retry"
    }
    RotatedSecret: {
      has_secret: boolean
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      last_rotated_at: string
      /** @description Its prefix and its last four characters */
      masked_value: string
      /** @description The new value, shown this once */
      value?: string
    }
    /** @description The team's API key and signing secret, and what they have been changed to. */
    RotatedSecrets: {
      api_key: components["schemas"]["RotatedSecret"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      signing_secret: components["schemas"]["RotatedSigningSecret"]
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    RotatedSigningSecret: {
      has_secret: boolean
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      last_rotated_at: string
      /** @description Its prefix and its last four characters */
      masked_value: string
      /** @description The new value, shown this once */
      value?: string
      /** @description The same secret as libraries of Standard Webhooks take it (whsec_ and base64), shown this once */
      whsec_value?: string
    }
    RunTrigger: {
      content_type: string | null
      /** @enum {string} */
      delivery_mode: "webhook" | "instant" | "polling" | "manual" | "replay"
      is_retry: boolean
      method: string | null
      path: string | null
      preview: components["schemas"]["PayloadPreview"] | null
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      received_at: string
      request_id: string
      size_bytes: number | null
      source: {
        definition_key: string | null
        id: string
        name: string | null
        provider_key: string | null
        trigger_name: string
      }
      /** @enum {string} */
      type: "request"
    }
    /** @description Who is calling. */
    Session: {
      /** @description What a call that names no team acts on */
      active_team_id: string
      memberships: components["schemas"]["Membership"][]
      /** @description Null: the caller is an API key */
      session: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        expires_at: string
      } | null
      /** @description Null: the caller is an API key */
      user: components["schemas"]["User"] | null
    }
    Share: {
      access_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      expires_at: string
      id: string
      last_accessed_at: string | null
      request: components["schemas"]["SharedRequest"]
      request_id: string
      revoked_at: string | null
      /** @enum {boolean} */
      sanitized: true
      /** @description The same as url */
      share_url: string
      source_id: string
      team_id: string
      title: string | null
      token: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      url: string
    }
    SharedRequest: {
      body: unknown
      /** @description Whether `body` is only the beginning, or was left out because nobody can tell what is in it */
      body_truncated: boolean
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      headers: {
        [key: string]: string | string[]
      }
      id: string
      method: string
      path: string
      query: {
        [key: string]: string | string[]
      }
      /** @enum {string} */
      status: "accepted" | "rejected"
      /** @description Path and query */
      url: string
      verified: boolean
    }
    ShareWrite: {
      expires_at?: string | null
      expires_in_seconds?: number | null
      include_body?: boolean | null
      label?: string | null
      redact_keys?: string[] | null
      title?: string | null
      ttl?: number | null
      ttl_seconds?: number | null
    }
    ShownProxySettings: {
      capture_response_bytes: number
      enabled: boolean
      forward_credentials?: boolean
      path_forwarding: boolean
      query_forwarding: boolean
      target_url: string
      timeout_ms: number
    }
    ShownTransformRule: {
      /** @example trs_01kak1y3q2f6a2j5h0g8e7d9km */
      transformation_id: string
      /** @enum {string} */
      type: "transform"
    }
    SkippedConnection: {
      /** @enum {string} */
      cause: "CONNECTION_DISABLED" | "DESTINATION_DISABLED" | "DESTINATION_DELETED"
      connection_id: string
      connection_name: string
      destination_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      since: string
    }
    /**
     * @description A source; secrets are masked, and status repeats disabled_at.
     * @example {
     *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "team_id": "tm_demo",
     *       "name": "shop",
     *       "description": "Orders of the shop",
     *       "type": "WEBHOOK",
     *       "input_type": "webhook",
     *       "status": "enabled",
     *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "config": {
     *         "auth_type": "HMAC",
     *         "auth": {
     *           "webhook_secret_key": "****shop",
     *           "header_key": "x-shop-signature",
     *           "algorithm": "sha256",
     *           "encoding": "hex",
     *           "prefix": "sha256="
     *         },
     *         "allowed_http_methods": [
     *           "POST",
     *           "PUT",
     *           "PATCH",
     *           "DELETE"
     *         ],
     *         "custom_response": null,
     *         "mode": "webhook",
     *         "proxy": null,
     *         "chat_defer_ephemeral": false,
     *         "rate_limit": null,
     *         "rate_limit_period": null
     *       },
     *       "disabled_at": null,
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "updated_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    Source: {
      config: components["schemas"]["SourceConfig"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      disabled_at: string | null
      id: string
      /** @enum {string} */
      input_type: "webhook"
      name: string
      /** @enum {string} */
      status: "enabled" | "disabled"
      team_id: string
      type: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      url: string
    }
    SourceConfig:
      | {
          allowed_http_methods: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[]
          auth: {
            algorithm?: string
            encoding?: string
            header_key?: string
            prefix?: string
            public_key?: string
            timestamp_header?: string
            tolerance_seconds?: number
            topic_arn?: string
            verify_token?: string
            webhook_id?: string
            webhook_secret_key?: string
          }
          /** @description null: nobody is verified, and auth is empty */
          auth_type: "HMAC" | null
          chat_defer_ephemeral: boolean
          custom_response: components["schemas"]["CustomResponse"] | null
          /** @enum {string} */
          mode: "webhook" | "proxy"
          proxy: components["schemas"]["ShownProxySettings"] | null
          rate_limit: number | null
          rate_limit_period: ("second" | "minute" | "hour" | "day") | null
        }
      | {
          allowed_http_methods: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[]
          auth: {
            api_key?: string
            header_key?: string
            query_key?: string
          }
          /** @enum {string} */
          auth_type: "API_KEY"
          chat_defer_ephemeral: boolean
          custom_response: components["schemas"]["CustomResponse"] | null
          /** @enum {string} */
          mode: "webhook" | "proxy"
          proxy: components["schemas"]["ShownProxySettings"] | null
          rate_limit: number | null
          rate_limit_period: ("second" | "minute" | "hour" | "day") | null
        }
      | {
          allowed_http_methods: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[]
          auth: {
            password?: string
            username?: string
          }
          /** @enum {string} */
          auth_type: "BASIC_AUTH"
          chat_defer_ephemeral: boolean
          custom_response: components["schemas"]["CustomResponse"] | null
          /** @enum {string} */
          mode: "webhook" | "proxy"
          proxy: components["schemas"]["ShownProxySettings"] | null
          rate_limit: number | null
          rate_limit_period: ("second" | "minute" | "hour" | "day") | null
        }
    SourceConfigPatch: {
      allowed_http_methods?: ("HEAD" | "GET" | "POST" | "PUT" | "PATCH" | "DELETE")[] | null
      auth?:
        | components["schemas"]["BasicAuth"]
        | components["schemas"]["ApiKeyAuth"]
        | components["schemas"]["HmacAuth"]
        | components["schemas"]["ProviderWebhookSecretKeyAuth"]
        | components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenAuth"]
        | components["schemas"]["ProviderOptionalWebhookSecretKeyAuth"]
        | components["schemas"]["ProviderApiKeyAuth"]
        | components["schemas"]["ProviderApiKeyOptionalHeaderKeyAuth"]
        | components["schemas"]["ProviderUsernamePasswordAuth"]
        | components["schemas"]["ProviderPublicKeyAuth"]
        | components["schemas"]["ProviderWebhookIdAuth"]
        | components["schemas"]["ProviderOptionalTopicArnAuth"]
        | components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeyAuth"]
        | Record<string, unknown>
        | null
      auth_type?: ("BASIC_AUTH" | "API_KEY" | "HMAC" | "PROVIDER_SIGNATURE") | null
      chat_defer_ephemeral?: boolean | null
      custom_response?: components["schemas"]["CustomResponse"] | null
      /**
       * @description webhook unless told, or proxy is enabled
       * @enum {string}
       */
      mode?: "webhook" | "proxy"
      proxy?: components["schemas"]["ProxySettings"] | Record<string, unknown> | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
    }
    /** @description What became of a source's requests in the last 24 hours, and where its ingest limit stands. */
    SourceHealth: {
      accepted_24h_count: number
      last_request_at: string | null
      limited_24h_count: number
      period: {
        doors: number
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        ends_at: string
        leased: number
        remaining: number
      } | null
      rate_limit: number | null
      rate_limit_period: ("second" | "minute" | "hour" | "day") | null
      rejected_24h_count: number
      source_id: string
    }
    SourceMetrics: {
      connections_count: number
      events_24h_bins: number[]
      events_24h_cancelled_bins: number[]
      events_24h_cancelled_count: number
      events_24h_count: number
      events_24h_failed_bins: number[]
      events_24h_failed_count: number
      events_24h_pending_bins: number[]
      events_24h_pending_count: number
      events_24h_successful_bins: number[]
      events_24h_successful_count: number
      id: string
      requests_24h_accepted_bins: number[]
      requests_24h_accepted_count: number
      requests_24h_count: number
      requests_24h_rejected_bins: number[]
      requests_24h_rejected_count: number
      requests_24h_total_count: number
      source_id: string
    }
    /**
     * @description What is given is merged into what is there; auth, custom_response and proxy are replaced whole.
     * @example {
     *       "description": "Orders of the new shop"
     *     }
     */
    SourcePatch: {
      config?: components["schemas"]["SourceConfigPatch"] | null
      description?: string | null
      /** @description Printable characters, unique in the team */
      name?: string
      /**
       * @description enabled unless told
       * @enum {string}
       */
      status?: "enabled" | "disabled"
      type?: string
      url?: string | null
    }
    /** @description By type: a provider's type has the settings of that provider in config.auth. The members of config may also stand at the top level, and settings of auth have other names that are taken for these. */
    SourceWrite:
      | components["schemas"]["GenericSourceWrite"]
      | components["schemas"]["ProviderWebhookSecretKeySourceWrite"]
      | components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenSourceWrite"]
      | components["schemas"]["ProviderOptionalWebhookSecretKeySourceWrite"]
      | components["schemas"]["ProviderApiKeySourceWrite"]
      | components["schemas"]["ProviderApiKeyOptionalHeaderKeySourceWrite"]
      | components["schemas"]["ProviderUsernamePasswordSourceWrite"]
      | components["schemas"]["ProviderPublicKeySourceWrite"]
      | components["schemas"]["ProviderWebhookIdSourceWrite"]
      | components["schemas"]["ProviderOptionalTopicArnSourceWrite"]
      | components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceWrite"]
    SpreadsheetDestinationConfig:
      | {
          auth:
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id: string
                client_secret: string
                code?: string
                code_verifier?: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                audience?: string
                /**
                 * Format: uri
                 * @description Where somebody consents, with what the provider wants to be asked beside in its query
                 */
                authorization_url?: string
                client_id?: string
                client_secret?: string
                code?: string
                code_verifier?: string
                /** @enum {boolean} */
                disabled: true
                /**
                 * Format: uri
                 * @description Where they are led back to; left out: to the gateway's own `/v1/oauth/callback`
                 */
                redirect_uri?: string
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token that somebody has consented to: at the gateway's request, or elsewhere
           * @enum {string}
           */
          auth_type: "OAUTH2_AUTHORIZATION_CODE"
          columns?: string[] | null
          include_metadata?: boolean | null
          range?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          sheet_name?: string | null
          /**
           * @description The id in the spreadsheet's URL, between /d/ and /edit
           * @example 1BxiMVs0XRA5nFMd
           */
          spreadsheet_id: string
          value_input_option?: ("RAW" | "USER_ENTERED") | null
        }
      | {
          auth:
            | {
                client_id: string
                client_secret: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                refresh_token: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url: string
              }
            | {
                client_id?: string
                client_secret?: string
                /** @enum {boolean} */
                disabled: true
                refresh_token?: string
                scope?: string
                /**
                 * @description How the client's secret is sent: `client_secret_basic` (unless told) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them
                 * @enum {string}
                 */
                token_auth_method?: "client_secret_basic" | "client_secret_post" | "basic" | "x-www-form-urlencoded"
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 */
                token_url?: string
              }
          /**
           * @description A token for a refresh token that somebody has given the gateway
           * @enum {string}
           */
          auth_type: "OAUTH_REFRESH_TOKEN"
          columns?: string[] | null
          include_metadata?: boolean | null
          range?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          sheet_name?: string | null
          /**
           * @description The id in the spreadsheet's URL, between /d/ and /edit
           * @example 1BxiMVs0XRA5nFMd
           */
          spreadsheet_id: string
          value_input_option?: ("RAW" | "USER_ENTERED") | null
        }
      | {
          auth:
            | {
                client_email: string
                /** @description true: as if there were no auth */
                disabled?: boolean
                private_key: string
                private_key_id?: string
                scope?: string
                subject?: string
                /**
                 * Format: uri
                 * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
                 */
                token_uri?: string
              }
            | {
                client_email?: string
                /** @enum {boolean} */
                disabled: true
                private_key?: string
                private_key_id?: string
                scope?: string
                subject?: string
                /**
                 * Format: uri
                 * @description Where tokens are asked for; left out: https://oauth2.googleapis.com/token
                 */
                token_uri?: string
              }
          /**
           * @description A token for what a service account signs. Its key file may be written as it is, as a JSON text in `service_account_key`
           * @enum {string}
           */
          auth_type: "SERVICE_ACCOUNT"
          columns?: string[] | null
          include_metadata?: boolean | null
          range?: string | null
          rate_limit?: number | null
          rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
          sheet_name?: string | null
          /**
           * @description The id in the spreadsheet's URL, between /d/ and /edit
           * @example 1BxiMVs0XRA5nFMd
           */
          spreadsheet_id: string
          value_input_option?: ("RAW" | "USER_ENTERED") | null
        }
    /**
     * @description Appends a row to a spreadsheet (Google Sheets).
     * @example {
     *       "name": "orders-sheet",
     *       "type": "SPREADSHEET",
     *       "config": {
     *         "spreadsheet_id": "1BxiMVs0XRA5nFMd",
     *         "columns": [
     *           "event_id",
     *           "order.id",
     *           "order.total"
     *         ],
     *         "auth_type": "OAUTH_REFRESH_TOKEN",
     *         "auth": {
     *           "client_id": "0000.apps.googleusercontent.com",
     *           "client_secret": "secret-of-the-client",
     *           "refresh_token": "1//token-of-the-account",
     *           "token_url": "https://oauth2.googleapis.com/token"
     *         }
     *       }
     *     }
     */
    SpreadsheetDestinationWrite: {
      config: components["schemas"]["SpreadsheetDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "SPREADSHEET"
    }
    SqlDatabaseDestinationConfig: {
      auth:
        | {
            /** @description true: as if there were no auth */
            disabled?: boolean
            password: string
            username: string
          }
        | {
            /** @enum {boolean} */
            disabled: true
            password?: string
            username?: string
          }
      /**
       * @description The user of a database and its password
       * @enum {string}
       */
      auth_type: "DATABASE_PASSWORD"
      conflict_mode?: ("ERROR" | "IGNORE") | null
      connect_timeout?: number | null
      /** @example shop */
      database: string
      delivered_at_column?: string | null
      /** @description host[:port]/database: another way to write the three */
      endpoint?: string
      event_id_column?: string | null
      /**
       * @description Host name or IP address of the server
       * @example db.example.com
       */
      host: string
      max_concurrency?: number | null
      metadata_column?: string | null
      payload_column?: string | null
      port?: number | null
      rate_limit?: number | null
      rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
      schema?: string | null
      /** @description Upper and lower case count, as in the columns */
      table: string
      tls_mode?: ("verify-full" | "disable") | null
    }
    /**
     * @description Inserts a row into a table of a PostgreSQL database.
     * @example {
     *       "name": "orders-table",
     *       "type": "SQL_DATABASE",
     *       "config": {
     *         "host": "db.example.com",
     *         "database": "shop",
     *         "table": "orders",
     *         "event_id_column": "event_id",
     *         "conflict_mode": "IGNORE",
     *         "auth_type": "DATABASE_PASSWORD",
     *         "auth": {
     *           "username": "tidegate",
     *           "password": "a-password"
     *         }
     *       }
     *     }
     */
    SqlDatabaseDestinationWrite: {
      config: components["schemas"]["SqlDatabaseDestinationConfig"]
      description?: string | null
      /** @description Printable characters, unique in the team */
      name: string
      /** @enum {string} */
      type: "SQL_DATABASE"
    }
    StepAttempt: {
      duration_ms: number | null
      error_code: string | null
      finished_at: string | null
      number: number
      response_status: number | null
      started_at: string | null
      /** @enum {string} */
      status: "running" | "succeeded" | "failed"
    }
    /**
     * @description From a step before.
     * @example {
     *       "source_type": "step",
     *       "source_step_id": "by_region",
     *       "source_port": "path_eu",
     *       "target_step_id": "to_crm"
     *     }
     */
    StepEdge: {
      /** @description What has to hold, beside its port: conditions like those of a filter */
      condition?: unknown
      /** @description Made of its place, unless told */
      id?: string
      mapping?: {
        [key: string]: unknown
      } | null
      /** @description Its place among the edges of one port */
      position?: number
      source_port?: string | null
      /** @description The step that it begins at */
      source_step_id: string
      /** @enum {string} */
      source_type: "step"
      /**
       * @description in, the only one
       * @enum {string}
       */
      target_port?: "in"
      /** @description The step that it leads to */
      target_step_id: string
    }
    StepExecution: {
      attempt_count: number
      /** @description The latest 50; of a step that runs for a list, those of its last element */
      attempts: components["schemas"]["StepAttempt"][]
      duration_ms: number | null
      error_code: string | null
      error_message: string | null
      execution_index: number
      finished_at: string | null
      /** @description Whether the run went on from its failure */
      handled: boolean
      id: string
      /** @description The first edge by which it was reached */
      input: {
        source_port: string
        source_step_id: string | null
        /** @enum {string} */
        source_type: "trigger" | "step"
      } | null
      input_preview: components["schemas"]["PayloadPreview"] | null
      iterations: {
        completed: number
        count: number
      } | null
      kind: string
      max_attempts: number
      name: string
      output_port: string | null
      output_ports: string[]
      output_preview: components["schemas"]["PayloadPreview"] | null
      queued_at: string | null
      resource: {
        id: string
        type: string
      } | null
      response_status: number | null
      skip_reason: ("filtered" | "path_not_taken" | "condition_false" | "upstream_failed" | "run_stopped") | null
      started_at: string | null
      /** @enum {string} */
      status: "pending" | "running" | "succeeded" | "failed" | "skipped"
      step_id: string
      wait: {
        /** @enum {string} */
        kind: "delay" | "retry" | "hold"
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        until: string
      } | null
      warnings: {
        code: string
        field: string | null
        line_item_index?: number | null
        message?: string
      }[]
    }
    StepRetries: {
      count: number
      last_requested_at: string | null
      last_step_id: string | null
      retryable_step_ids: string[]
    }
    StepRetryInput: {
      /** @description A step that failed */
      step_id: string
    }
    StepSummary: {
      error_code: string | null
      error_message: string | null
      execution_index: number
      finished_at: string | null
      id: string
      /** @description The first edge by which it was reached */
      input: {
        source_port: string
        source_step_id: string | null
        /** @enum {string} */
        source_type: "trigger" | "step"
      } | null
      kind: string
      name: string
      output_port: string | null
      response_status: number | null
      started_at: string | null
      /** @enum {string} */
      status: "pending" | "running" | "succeeded" | "failed" | "skipped"
      step_id: string
    }
    StreamFrame:
      | {
          /** @description From here on every request of this bin is told */
          bin_id: string
          /** @enum {string} */
          type: "hello"
        }
      | {
          request: components["schemas"]["CapturedRequest"]
          /** @enum {string} */
          type: "request"
        }
      | {
          /**
           * @description More came at once than a stream tells: read the list
           * @enum {string}
           */
          type: "skipped"
        }
      | {
          /**
           * @description Every 30 seconds: who has heard nothing for 75 has lost the stream
           * @enum {string}
           */
          type: "alive"
        }
    Team: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      id: string
      /** @description How many belong to it */
      members: number
      name: string
      retention: components["schemas"]["TeamRetention"]
    }
    TeamMember: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      email: string | null
      /** @description Added by their address, and not signed in since: they are let in when they do */
      expected: boolean
      /** @description The user's */
      id: string
      name: string | null
      /** @enum {string} */
      role: "owner" | "member"
    }
    TeamMemberPatch: {
      /** @enum {string} */
      role: "owner" | "member"
    }
    TeamMemberWrite: {
      /** @description The address that their identity provider has verified, or will have */
      email: string
      /**
       * @description member, unless told
       * @enum {string}
       */
      role?: "owner" | "member"
    }
    TeamPatch: {
      /** @description 1 to 120 characters that can be seen. Spaces around it are left out */
      name?: string
      /** @description Counts from the next run of retention on, in both directions; what is gone does not come back */
      retention?: {
        /** @description null: as the operator keeps it, which is the most */
        payload_days?: number | null
        /** @description null: as the operator keeps it, which is the most */
        record_days?: number | null
      }
    }
    TeamRetention: {
      /** @description What the operator keeps, and lets a team keep */
      most_payload_days: number
      most_record_days: number
      /** @description Bodies, headers, queries, logs */
      payload_days: number
      /** @description Requests, events, attempts, runs */
      record_days: number
    }
    TeamWrite: {
      /** @description 1 to 120 characters that can be seen. Spaces around it are left out */
      name: string
      /** @description Its first owner; the caller, unless told */
      owner?: string
    }
    /** @description What a text has to meet: a text to equal, or operators. */
    TextCondition: string | components["schemas"]["ConditionOperators"]
    TimelineItem: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      at: string
      attempt_id?: string
      connection_id?: string
      destination_id?: string
      event_id?: string
      id: string
      ignored_event_id?: string
      /** @enum {string} */
      kind:
        | "request"
        | "proxy_exchange"
        | "skipped_connection"
        | "ignored_event"
        | "workflow_run"
        | "transformation"
        | "event"
        | "attempt"
      label: string
      proxy_exchange_id?: string
      request_id: string
      status?: string
      transformation_execution_id?: string
      workflow_id?: string
      workflow_run_id?: string
    }
    Trace: {
      attempts: components["schemas"]["Attempt"][]
      attempts_by_event_id: {
        [key: string]: components["schemas"]["Attempt"][]
      }
      counts: {
        attempts: number
        events: number
        ignored_events: number
        proxy_exchanges: number
        skipped_connections: number
        transformations: number
        workflow_runs: number
      }
      events: components["schemas"]["Event"][]
      ignored_events: components["schemas"]["IgnoredEvent"][]
      /** @description Why nothing is delivered; null where there are events */
      no_event_reason: components["schemas"]["NoEventReason"] | null
      proxy_exchange: components["schemas"]["ProxyExchange"] | null
      request: components["schemas"]["Request"]
      skipped_connections: components["schemas"]["SkippedConnection"][]
      timeline: components["schemas"]["TimelineItem"][]
      transformations: components["schemas"]["ExecutionDetail"][]
      transformations_by_event_id: {
        [key: string]: components["schemas"]["ExecutionDetail"][]
      }
      truncated: boolean
      workflow_runs: components["schemas"]["WorkflowRun"][]
    }
    Transformation: {
      code: string
      code_hash: string
      connections_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      deleted_at: string | null
      env: {
        [key: string]: string
      }
      executions_24h_count: number
      executions_24h_failed_bins: number[]
      executions_24h_failed_count: number
      executions_24h_successful_bins: number[]
      executions_24h_successful_count: number
      id: string
      isolation: ("sealed" | "fresh") | null
      isolation_reason: string | null
      name: string
      /** @enum {string} */
      runtime: "js-v1"
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
    }
    TransformationCapabilities: {
      globals: string[]
      handlers: "transform"[]
      isolations: ("sealed" | "fresh")[]
      limits: {
        body_depth: number
        body_values: number
        code_bytes: number
        header_name_bytes: number
        header_value_bytes: number
        headers: number
        headers_bytes: number
        log_line_bytes: number
        log_lines: number
        memory_bytes: number
        output_bytes: number
        path_bytes: number
        query_bytes: number
        query_values: number
        time_ms: number
        variables: number
        variables_bytes: number
      }
      /** @enum {string} */
      runtime: "js-v1"
      runtimes: "js-v1"[]
    }
    TransformationMetrics: {
      connections_count: number
      executions_24h_count: number
      executions_24h_failed_bins: number[]
      executions_24h_failed_count: number
      executions_24h_successful_bins: number[]
      executions_24h_successful_count: number
      id: string
      transformation_id: string
    }
    TransformationPatch: {
      /** @description JavaScript that calls addHandler with what makes one request of another; at most 1 MiB */
      code?: string
      /** @description Variables, as process.env and context.env; replaced whole. At most 100, and 64 KiB */
      env?: {
        [key: string]: string
      } | null
      /** @description `fresh`: each call has a world of its own. `sealed`, the default: calls take turns in a sealed one, which is quicker, unless the code is found to differ there */
      isolation?: ("sealed" | "fresh") | null
      /** @description Printable characters, unique in the team */
      name?: string
    }
    TransformationRun: {
      console: string[]
      error: {
        code: string
        line: number | null
        message: string
        name: string
      } | null
      /** @enum {string} */
      log_level: "debug" | "info" | "warn" | "error"
      request: {
        body: unknown
        headers: {
          [key: string]: string | string[]
        }
        method: string
        parsed_query: {
          [key: string]: string | string[]
        }
        path: string
        query:
          | string
          | {
              [key: string]: string | string[]
            }
      } | null
      /** @enum {string} */
      runtime: "js-v1"
      stats: {
        duration_ms: number
        memory_bytes: number
      }
      transformation_id: string | null
      transformation_run_time: {
        duration_ms: number
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        finished_at: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        started_at: string
      }
      warnings: string[]
    }
    /**
     * @description What to run, by id or as code, and on what.
     * @example {
     *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
     *       "env": {
     *         "TENANT": "acme"
     *       },
     *       "request": {
     *         "method": "POST",
     *         "path": "/orders",
     *         "query": {
     *           "page": "1"
     *         },
     *         "headers": {
     *           "content-type": "application/json",
     *           "x-shop-signature": "sha256=4f2a"
     *         },
     *         "body": {
     *           "type": "order.created",
     *           "id": 1
     *         }
     *       },
     *       "context": {
     *         "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn"
     *       }
     *     }
     */
    TransformationRunInput: {
      code?: string | null
      context?: {
        connection_id?: string | null
        destination_id?: string | null
        request_id?: string | null
        source_id?: string | null
      }
      /** @description Instead of the variables that are stored with the transformation */
      env?: {
        [key: string]: string
      } | null
      request?: components["schemas"]["RequestSample"]
      /** @description What the code takes for now: ISO 8601 */
      timestamp?: string
      transformation_id?: string | null
    }
    /**
     * @description Runs a transformation (trs_…).
     * @example {
     *       "id": "reshape",
     *       "kind": "transformation",
     *       "name": "Reshape",
     *       "resource_id": "trs_01kak1y3q2f6a2j5h0g8e7d9km"
     *     }
     */
    TransformationStep: {
      action?: string | null
      action_revision_id?: string | null
      config?: components["schemas"]["TransformationStepConfig"]
      /** @description 4 to 96 letters, digits, _ and -; of one kind of step in all versions of the workflow */
      id: string
      invocation_inputs?: {
        [key: string]: unknown
      } | null
      /** @enum {string} */
      kind: "transformation"
      /** @description For people */
      name?: string
      position?: {
        x: number
        y: number
      } | null
      resource_id: string
    }
    TransformationStepConfig: {
      note?: string
      /** @enum {string} */
      on_error?: "fail" | "continue" | "branch"
    }
    TransformationValidation: {
      console: string[]
      error: {
        code: string
        line: number | null
        message: string
        name: string
      } | null
      handlers: "transform"[]
      /** @enum {string} */
      runtime: "js-v1"
      valid: boolean
    }
    /**
     * @description Code that is to be looked at.
     * @example {
     *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))"
     *     }
     */
    TransformationValidationInput: {
      /** @description JavaScript that calls addHandler with what makes one request of another; at most 1 MiB */
      code: string
      /** @description Variables that it is loaded with */
      env?: {
        [key: string]: string
      } | null
    }
    /**
     * @example {
     *       "name": "add-tenant",
     *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
     *       "env": {
     *         "TENANT": "acme"
     *       }
     *     }
     */
    TransformationWrite: {
      /** @description JavaScript that calls addHandler with what makes one request of another; at most 1 MiB */
      code: string
      /** @description Variables, as process.env and context.env; replaced whole. At most 100, and 64 KiB */
      env?: {
        [key: string]: string
      } | null
      /** @description `fresh`: each call has a world of its own. `sealed`, the default: calls take turns in a sealed one, which is quicker, unless the code is found to differ there */
      isolation?: ("sealed" | "fresh") | null
      /** @description Printable characters, unique in the team */
      name: string
    }
    /** @description Read back as `transform`. */
    TransformRule: {
      /** @example trs_01kak1y3q2f6a2j5h0g8e7d9km */
      transformation_id: string
      /** @enum {string} */
      type: "transform" | "transformation"
    }
    /**
     * @description From what starts the run.
     * @example {
     *       "source_type": "trigger",
     *       "target_step_id": "only_paid"
     *     }
     */
    TriggerEdge: {
      /** @description What has to hold, beside its port: conditions like those of a filter */
      condition?: unknown
      /** @description Made of its place, unless told */
      id?: string
      mapping?: {
        [key: string]: unknown
      } | null
      /** @description Its place among the edges of one port */
      position?: number
      source_port?: "out" | null
      source_step_id?: string | null
      /** @enum {string} */
      source_type: "trigger"
      /**
       * @description in, the only one
       * @enum {string}
       */
      target_port?: "in"
      /** @description The step that it leads to */
      target_step_id: string
    }
    TunnelFrame:
      | {
          /** @description The session, as `cli_id` of events has it */
          cli_id: string
          destination_id: string
          /** @description Send a ping at least so often */
          heartbeat_seconds: number
          /** @description Deliveries that are not answered yet, at the most */
          max_in_flight: number
          /** @enum {string} */
          type: "hello"
        }
      | {
          /** @description To be answered with; the same for the same attempt, however often it is sent */
          job_id: string
          request: {
            attempt_number: number
            body?: string
            /** @description Instead of `body`, when that is no text or large */
            body_base64?: string
            connection_id: string
            destination_id: string
            event_id: string
            headers: {
              [key: string]: string | string[]
            }
            /** @description What the client has said when it connected */
            local_url: string | null
            method: string
            /** @description With its query; to be appended to the local URL */
            path: string
            request_id: string
            source_id: string
            team_id: string
          }
          timeout_ms: number
          /** @enum {string} */
          type: "delivery"
        }
      | {
          /** @enum {string} */
          type: "pong"
        }
    /**
     * @example {
     *       "mode": "dry_run",
     *       "trigger": {
     *         "method": "POST",
     *         "path": "/",
     *         "headers": {
     *           "content-type": "application/json",
     *           "x-shop-signature": "sha256=4f2a"
     *         },
     *         "body": {
     *           "type": "order.created",
     *           "id": 1
     *         }
     *       },
     *       "mocks": {
     *         "to_crm": {
     *           "error": {
     *             "code": "BAD_RESPONSE",
     *             "message": "simulated"
     *           }
     *         }
     *       },
     *       "steps": [
     *         {
     *           "id": "only_paid",
     *           "kind": "filter",
     *           "name": "Paid only",
     *           "config": {
     *             "conditions": {
     *               "trigger": {
     *                 "body": {
     *                   "status": "paid"
     *                 }
     *               }
     *             }
     *           }
     *         },
     *         {
     *           "id": "to_crm",
     *           "kind": "destination",
     *           "name": "CRM",
     *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *           "invocation_inputs": {
     *             "body": {
     *               "order": "{{trigger.body.id}}"
     *             }
     *           }
     *         }
     *       ],
     *       "edges": [
     *         {
     *           "id": "e_begin",
     *           "source_type": "trigger",
     *           "target_step_id": "only_paid"
     *         },
     *         {
     *           "id": "e_paid",
     *           "source_type": "step",
     *           "source_step_id": "only_paid",
     *           "target_step_id": "to_crm"
     *         }
     *       ]
     *     }
     */
    UnsavedWorkflowTestInput: {
      context?: {
        steps?: Record<string, unknown> | null
      } | null
      edges?: components["schemas"]["WorkflowEdge"][] | null
      include_previews?: boolean | null
      mocks?: {
        [key: string]: {
          error?: {
            code: string
            message: string
          } | null
          output?: unknown
        }
      } | null
      mode?: ("dry_run" | "live") | null
      request_id?: string | null
      source_id?: string | null
      step_id?: string | null
      steps?: components["schemas"]["WorkflowStep"][] | null
      trigger?: components["schemas"]["RequestSample"] | null
    }
    /** @description Somebody who signs in. */
    User: {
      email: string | null
      id: string
      name: string | null
      picture_url: string | null
    }
    VersionEvidence: {
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      /** @description Who asked for the change that made it. Null: an API key did; or it was made before that was kept, or for a test */
      created_by_user_id: string | null
      current_version: number
      definition_hash: string
      edges: unknown[]
      formatter_engine_version: string | null
      is_current: boolean
      number: number
      resources: components["schemas"]["ResourceEvidence"][]
      steps: unknown[]
      workflow_name: string
    }
    Warning: {
      /** @description For programs */
      code: string
      /** @description For people */
      message: string
      /** @description The member that it is about */
      path: string
    }
    Workflow: {
      capabilities: components["schemas"]["WorkflowCapabilities"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      edges?: components["schemas"]["WorkflowEdge"][]
      edges_count: number
      id: string
      name: string
      source: components["schemas"]["WorkflowTrigger"] | null
      /** @description Null: its source was deleted */
      source_id: string | null
      /** @enum {string} */
      status: "draft" | "active" | "paused" | "disabled"
      steps?: components["schemas"]["WorkflowStep"][]
      steps_count: number
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      /** @description One more with every change */
      version: number
    }
    WorkflowActivity: {
      /** @description One, and the step retries that were asked for */
      attempt_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      error_code: string | null
      error_message: string | null
      failed_steps: number
      finished_at: string | null
      id: string
      outcome: ("completed" | "filtered" | "completed_with_errors" | "failed" | "cancelled") | null
      request_id: string
      skipped_steps: number
      source: {
        id: string
        name: string | null
        provider_key: string | null
        trigger_name: string
      }
      started_at: string | null
      /** @enum {string} */
      status: "queued" | "running" | "succeeded" | "failed"
      /** @description Of a run that was stored more than 200 times, those that changed lately or at the beginning */
      steps: components["schemas"]["StepSummary"][]
      steps_count: number
      succeeded_steps: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      workflow_id: string
      workflow_name: string | null
      workflow_version: number
    }
    WorkflowActivityList: {
      applied_range: {
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        from: string
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        to: string
      }
      count: number
      models: components["schemas"]["WorkflowActivity"][]
      total: number
      total_exact: boolean
    }
    WorkflowAggregate: {
      /** @description Those that were made */
      actions: components["schemas"]["Action"][]
      created: {
        actions: string[]
        source: boolean
        workflow: boolean
      }
      source: components["schemas"]["Source"] | null
      /** @description What is left open of the workflow, and of a source that was made, where there is something */
      warnings?: components["schemas"]["Warning"][]
      workflow: components["schemas"]["Workflow"]
    }
    /**
     * @example {
     *       "source": {
     *         "name": "shop",
     *         "type": "WEBHOOK"
     *       },
     *       "workflow": {
     *         "name": "Paid order to CRM",
     *         "steps": [
     *           {
     *             "id": "only_paid",
     *             "kind": "filter",
     *             "name": "Paid only",
     *             "config": {
     *               "conditions": {
     *                 "trigger": {
     *                   "body": {
     *                     "status": "paid"
     *                   }
     *                 }
     *               }
     *             }
     *           },
     *           {
     *             "id": "to_crm",
     *             "kind": "destination",
     *             "name": "CRM",
     *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *             "invocation_inputs": {
     *               "body": {
     *                 "order": "{{trigger.body.id}}"
     *               }
     *             }
     *           }
     *         ],
     *         "edges": [
     *           {
     *             "id": "e_begin",
     *             "source_type": "trigger",
     *             "target_step_id": "only_paid"
     *           },
     *           {
     *             "id": "e_paid",
     *             "source_type": "step",
     *             "source_step_id": "only_paid",
     *             "target_step_id": "to_crm"
     *           }
     *         ]
     *       }
     *     }
     */
    WorkflowAggregateInput: {
      actions?:
        | {
            action_key: string
            auth_mode?: string | null
            config?: {
              auth_mode?: string | null
              credentials?: Record<string, unknown> | null
              inputs?: Record<string, unknown> | null
              provider_account_id?: string | null
              rate_limit?: number | null
              rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
            }
            credentials?: Record<string, unknown> | null
            inputs?: Record<string, unknown> | null
            /** @description Printable characters, unique in the team */
            name: string
            provider_account_id?: string | null
            provider_key: string
            rate_limit?: number | null
            rate_limit_period?: ("second" | "minute" | "hour" | "day") | null
            ref: string
            /** @enum {string} */
            status?: "enabled" | "disabled"
          }[]
        | null
      source?:
        | (
            | components["schemas"]["GenericSourceWrite_1"]
            | components["schemas"]["ProviderWebhookSecretKeySourceWrite_1"]
            | components["schemas"]["ProviderWebhookSecretKeyOptionalVerifyTokenSourceWrite_1"]
            | components["schemas"]["ProviderOptionalWebhookSecretKeySourceWrite_1"]
            | components["schemas"]["ProviderApiKeySourceWrite_1"]
            | components["schemas"]["ProviderApiKeyOptionalHeaderKeySourceWrite_1"]
            | components["schemas"]["ProviderUsernamePasswordSourceWrite_1"]
            | components["schemas"]["ProviderPublicKeySourceWrite_1"]
            | components["schemas"]["ProviderWebhookIdSourceWrite_1"]
            | components["schemas"]["ProviderOptionalTopicArnSourceWrite_1"]
            | components["schemas"]["ProviderOptionalWebhookSecretKeyOptionalPublicKeySourceWrite_1"]
            | {
                id: string
              }
          )
        | null
      source_id?: string | null
      version?: number | null
      /** @description As POST /workflows takes it, or with workflow_id as PATCH does; without source_id */
      workflow: {
        description?: string | null
        /** @description The edges, as a whole; at most 250 */
        edges?: components["schemas"]["WorkflowEdge"][]
        /** @description Printable characters, unique in the team */
        name?: string
        source_id?: string
        /**
         * @description `active` unless told
         * @enum {string}
         */
        status?: "draft" | "active" | "paused" | "disabled"
        /** @description The steps, as a whole; at most 100 */
        steps?: components["schemas"]["WorkflowStep"][]
        /** @description The version that the change was made from: refused when there is a later one. Without it the last one wins */
        version?: number
      }
      workflow_id?: string | null
    }
    WorkflowCapabilities: {
      branching: boolean
      fan_out: boolean
      join: boolean
      runtime_executable: boolean
      runtime_issue: components["schemas"]["WorkflowRuntimeIssue"] | null
      sequential_action_loop: boolean
    }
    WorkflowDeleted: {
      /** @enum {boolean} */
      deleted: true
      id: string
      /** @enum {boolean} */
      source_deleted: false
      source_id: string | null
    }
    /** @description By where it begins. */
    WorkflowEdge: components["schemas"]["TriggerEdge"] | components["schemas"]["StepEdge"]
    WorkflowMetrics: {
      /** @description Of those that have ended, waits included; null: none has */
      avg_duration_ms: number | null
      /** @description Runs that have begun, in 24 counts of an hour, the oldest first */
      bins: number[]
      id: string
      /** @description Runs that have begun */
      runs_24h_count: number
      runs_24h_failed_count: number
      workflow_id: string
    }
    WorkflowPatch: {
      description?: string | null
      /** @description The edges, as a whole; at most 250 */
      edges?: components["schemas"]["WorkflowEdge"][]
      /** @description Printable characters, unique in the team */
      name?: string
      source_id?: string
      /**
       * @description `active` unless told
       * @enum {string}
       */
      status?: "draft" | "active" | "paused" | "disabled"
      /** @description The steps, as a whole; at most 100 */
      steps?: components["schemas"]["WorkflowStep"][]
      /** @description The version that the change was made from: refused when there is a later one. Without it the last one wins */
      version?: number
    }
    WorkflowRun: {
      /** @description One, and the step retries that were asked for */
      attempt_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      duration_ms: number | null
      error_code: string | null
      error_message: string | null
      error_step_id: string | null
      failed_steps: number
      finished_at: string | null
      /** @description Why it does not go on */
      hold_reason: "paused" | null
      id: string
      outcome: ("completed" | "filtered" | "completed_with_errors" | "failed" | "cancelled") | null
      pending_steps: number
      request_id: string
      /** @enum {string} */
      run_type: "workflow"
      running_steps: number
      skipped_steps: number
      started_at: string | null
      /** @enum {string} */
      status: "queued" | "running" | "succeeded" | "failed"
      steps_count: number
      succeeded_steps: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      workflow_id: string
      workflow_version: number
    }
    WorkflowRunDetail: {
      /** @description One, and the step retries that were asked for */
      attempt_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      duration_ms: number | null
      error_code: string | null
      error_message: string | null
      error_step_id: string | null
      failed_steps: number
      finished_at: string | null
      /** @description Why it does not go on */
      hold_reason: "paused" | null
      id: string
      outcome: ("completed" | "filtered" | "completed_with_errors" | "failed" | "cancelled") | null
      pending_steps: number
      request_id: string
      retry: components["schemas"]["StepRetries"]
      /** @enum {string} */
      run_type: "workflow"
      running_steps: number
      skipped_steps: number
      started_at: string | null
      /** @enum {string} */
      status: "queued" | "running" | "succeeded" | "failed"
      steps: components["schemas"]["StepExecution"][]
      steps_count: number
      succeeded_steps: number
      trigger: components["schemas"]["RunTrigger"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      version: components["schemas"]["VersionEvidence"]
      workflow_id: string
      workflow_version: number
    }
    WorkflowRunList: {
      count: number
      models: components["schemas"]["WorkflowRun"][]
      next_cursor: string | null
    }
    WorkflowRuntimeIssue: {
      /** @enum {string} */
      code: "workflow_resource_missing" | "workflow_resource_disabled" | "workflow_action_disabled"
      field: string | null
      message: string
      step_id: string | null
      step_name: string | null
      step_number: number | null
    }
    /** @description By kind. Every step needs an edge that leads to it. */
    WorkflowStep:
      | components["schemas"]["ActionStep"]
      | components["schemas"]["DestinationStep"]
      | components["schemas"]["TransformationStep"]
      | components["schemas"]["FilterStep"]
      | components["schemas"]["DelayStep"]
      | components["schemas"]["BranchStep"]
    WorkflowTemplate: {
      description: string
      key: string
      name: string
      /** @description What it has to be given */
      required_connections: {
        description: string
        /** @description Its name among `bindings` */
        key: string
        /** @enum {string} */
        type: "destination" | "source" | "url"
      }[]
      /** @description The body of a request that goes through it */
      sample: unknown
      steps: {
        action_key: string | null
        kind: string
        name: string
        provider_key: string | null
      }[]
      trigger: {
        definition_key: string | null
        name: string
        provider_key: string | null
      }
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      version: number
    }
    WorkflowTemplateDetail: {
      /** @description The workflow that is made of it; `<key>` stands for what is given as the binding of that key */
      definition: {
        edges: unknown[]
        steps: unknown[]
      }
      description: string
      key: string
      name: string
      /** @description What it has to be given */
      required_connections: {
        description: string
        /** @description Its name among `bindings` */
        key: string
        /** @enum {string} */
        type: "destination" | "source" | "url"
      }[]
      /** @description The body of a request that goes through it */
      sample: unknown
      steps: {
        action_key: string | null
        kind: string
        name: string
        provider_key: string | null
      }[]
      trigger: {
        definition_key: string | null
        name: string
        provider_key: string | null
      }
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      version: number
    }
    WorkflowTemplateList: {
      count: number
      models: components["schemas"]["WorkflowTemplate"][]
    }
    /**
     * @example {
     *       "name": "Alert on a failed payment",
     *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "bindings": {
     *         "alerts": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
     *       }
     *     }
     */
    WorkflowTemplateUse: {
      bindings?: {
        [key: string]: string
      } | null
      name?: string | null
      source_id?: string | null
    }
    WorkflowTest: {
      /** @description One, and the step retries that were asked for */
      attempt_count: number
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      duration_ms: number | null
      error_code: string | null
      error_message: string | null
      error_step_id: string | null
      failed_steps: number
      finished_at: string | null
      /** @description Why it does not go on */
      hold_reason: "paused" | null
      id: string
      /** @enum {string} */
      mode: "dry_run" | "live"
      outcome: ("completed" | "filtered" | "completed_with_errors" | "failed" | "cancelled") | null
      pending_steps: number
      /** @description Null: the request was in the body */
      request_id: string | null
      retry: components["schemas"]["StepRetries"]
      /** @enum {string} */
      run_type: "workflow"
      running_steps: number
      skipped_steps: number
      started_at: string | null
      /** @enum {string} */
      status: "queued" | "running" | "succeeded" | "failed"
      steps: {
        attempt_count: number
        /** @description The latest 50; of a step that runs for a list, those of its last element */
        attempts: components["schemas"]["StepAttempt"][]
        duration_ms: number | null
        error_code: string | null
        error_message: string | null
        execution_index: number
        finished_at: string | null
        /** @description Whether the run went on from its failure */
        handled: boolean
        id: string
        /** @description The first edge by which it was reached */
        input: {
          source_port: string
          source_step_id: string | null
          /** @enum {string} */
          source_type: "trigger" | "step"
        } | null
        input_preview: components["schemas"]["PayloadPreview"] | null
        iterations: {
          completed: number
          count: number
        } | null
        kind: string
        max_attempts: number
        name: string
        output_port: string | null
        output_ports: string[]
        output_preview: components["schemas"]["PayloadPreview"] | null
        queued_at: string | null
        resource: {
          id: string
          type: string
        } | null
        response_status: number | null
        /** @description Whether a mock or a sample stood in for the step */
        simulated: boolean
        skip_reason: ("filtered" | "path_not_taken" | "condition_false" | "upstream_failed" | "run_stopped") | null
        started_at: string | null
        /** @enum {string} */
        status: "pending" | "running" | "succeeded" | "failed" | "skipped"
        step_id: string
        wait: {
          /** @enum {string} */
          kind: "delay" | "retry" | "hold"
          /**
           * Format: date-time
           * @description ISO 8601, UTC, milliseconds
           * @example 2026-01-01T00:00:00.000Z
           */
          until: string
        } | null
        warnings: {
          code: string
          field: string | null
          line_item_index?: number | null
          message?: string
        }[]
      }[]
      steps_count: number
      succeeded_steps: number
      /** @enum {boolean} */
      test: true
      trigger: {
        content_type: string | null
        /** @enum {string} */
        delivery_mode: "webhook" | "instant" | "polling" | "manual" | "replay"
        is_retry: boolean
        method: string | null
        path: string | null
        preview: components["schemas"]["PayloadPreview"] | null
        /**
         * Format: date-time
         * @description ISO 8601, UTC, milliseconds
         * @example 2026-01-01T00:00:00.000Z
         */
        received_at: string
        request_id: string | null
        size_bytes: number | null
        source: {
          definition_key: string | null
          id: string
          name: string | null
          provider_key: string | null
          trigger_name: string
        }
        /** @enum {string} */
        type: "request"
      }
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      version: components["schemas"]["VersionEvidence"]
      /** @description Of the graph: names that a step's output does not have; not there when there are none */
      warnings?: components["schemas"]["Warning"][]
      /** @description Null: the graph was in the body */
      workflow_id: string | null
      /** @description The version whose graph it was; 0: the graph was in the body */
      workflow_version: number
    }
    /**
     * @example {
     *       "mode": "dry_run",
     *       "trigger": {
     *         "method": "POST",
     *         "path": "/",
     *         "headers": {
     *           "content-type": "application/json",
     *           "x-shop-signature": "sha256=4f2a"
     *         },
     *         "body": {
     *           "type": "order.created",
     *           "id": 1
     *         }
     *       },
     *       "mocks": {
     *         "to_crm": {
     *           "error": {
     *             "code": "BAD_RESPONSE",
     *             "message": "simulated"
     *           }
     *         }
     *       }
     *     }
     */
    WorkflowTestInput: {
      context?: {
        steps?: Record<string, unknown> | null
      } | null
      edges?: components["schemas"]["WorkflowEdge"][] | null
      include_previews?: boolean | null
      mocks?: {
        [key: string]: {
          error?: {
            code: string
            message: string
          } | null
          output?: unknown
        }
      } | null
      mode?: ("dry_run" | "live") | null
      request_id?: string | null
      step_id?: string | null
      steps?: components["schemas"]["WorkflowStep"][] | null
      trigger?: components["schemas"]["RequestSample"] | null
    }
    WorkflowTrigger: {
      definition_key: string | null
      definition_name: string | null
      export_path: string | null
      id: string
      name: string
      output_schema: unknown
      primary_output: string
      provider_key: string | null
      sample: unknown
      /** @enum {string} */
      schema_provenance: "provider" | "sample" | "none"
      /** @enum {string} */
      status: "enabled" | "disabled"
      type: string
    }
    /**
     * @example {
     *       "name": "Paid order to CRM",
     *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
     *       "steps": [
     *         {
     *           "id": "only_paid",
     *           "kind": "filter",
     *           "name": "Paid only",
     *           "config": {
     *             "conditions": {
     *               "trigger": {
     *                 "body": {
     *                   "status": "paid"
     *                 }
     *               }
     *             }
     *           }
     *         },
     *         {
     *           "id": "to_crm",
     *           "kind": "destination",
     *           "name": "CRM",
     *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
     *           "invocation_inputs": {
     *             "body": {
     *               "order": "{{trigger.body.id}}"
     *             }
     *           }
     *         }
     *       ],
     *       "edges": [
     *         {
     *           "id": "e_begin",
     *           "source_type": "trigger",
     *           "target_step_id": "only_paid"
     *         },
     *         {
     *           "id": "e_paid",
     *           "source_type": "step",
     *           "source_step_id": "only_paid",
     *           "target_step_id": "to_crm"
     *         }
     *       ]
     *     }
     */
    WorkflowWrite: {
      description?: string | null
      /** @description The edges, as a whole; at most 250 */
      edges?: components["schemas"]["WorkflowEdge"][]
      /** @description Printable characters, unique in the team */
      name: string
      source_id: string
      /**
       * @description `active` unless told
       * @enum {string}
       */
      status?: "draft" | "active" | "paused" | "disabled"
      /** @description The steps, as a whole; at most 100 */
      steps?: components["schemas"]["WorkflowStep"][]
      /** @description The version that the change of a workflow that is there was made from: refused when there is a later one. Without it the last one wins */
      version?: number
    }
    /** @description The record, with what is left open */
    WrittenSource: {
      config: components["schemas"]["SourceConfig"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      disabled_at: string | null
      id: string
      /** @enum {string} */
      input_type: "webhook"
      name: string
      /** @enum {string} */
      status: "enabled" | "disabled"
      team_id: string
      type: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      url: string
      /** @description What the write leaves open; not there when it is nothing */
      warnings?: components["schemas"]["Warning"][]
    }
    /** @description The record, with what is left open */
    WrittenWorkflow: {
      capabilities: components["schemas"]["WorkflowCapabilities"]
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      created_at: string
      description: string | null
      edges?: components["schemas"]["WorkflowEdge"][]
      edges_count: number
      id: string
      name: string
      source: components["schemas"]["WorkflowTrigger"] | null
      /** @description Null: its source was deleted */
      source_id: string | null
      /** @enum {string} */
      status: "draft" | "active" | "paused" | "disabled"
      steps?: components["schemas"]["WorkflowStep"][]
      steps_count: number
      team_id: string
      /**
       * Format: date-time
       * @description ISO 8601, UTC, milliseconds
       * @example 2026-01-01T00:00:00.000Z
       */
      updated_at: string
      /** @description One more with every change */
      version: number
      /** @description What the write leaves open; not there when it is nothing */
      warnings?: components["schemas"]["Warning"][]
    }
  }
  responses: never
  parameters: {
    /**
     * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
     * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
     */
    IdempotencyKey: string
    /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
    IfNoneMatch: string
    /**
     * @description The team to act on; without it (and without team_id), the API key's own, or the session's
     * @example tm_demo
     */
    TeamId: string
  }
  requestBodies: never
  headers: never
  pathItems: never
}
export type $defs = Record<string, never>
export interface operations {
  listActionOptions: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "provider_key": "gateway",
         *       "resource": "sources",
         *       "query": "shop"
         *     }
         */
        "application/json": components["schemas"]["ActionOptionsInput"]
      }
    }
    responses: {
      /** @description ActionChoices */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "models": [
           *         {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "shop",
           *           "description": "WEBHOOK"
           *         }
           *       ],
           *       "next_cursor": null
           *     }
           */
          "application/json": components["schemas"]["ActionChoices"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getActionProviders: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description ActionProviders */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "key": "storage",
           *           "name": "Storage",
           *           "description": "Keeps values for the team, by key.",
           *           "icon_key": "database",
           *           "manifest_version": "1.0.0",
           *           "config_version": 1,
           *           "capabilities": [
           *             "actions"
           *           ],
           *           "auth": {
           *             "type": "none",
           *             "provider_key": "storage",
           *             "connection_type": "none",
           *             "credential_fields": [],
           *             "modes": [
           *               "none"
           *             ]
           *           },
           *           "actions": [
           *             {
           *               "key": "get",
           *               "provider_key": "storage",
           *               "name": "Get a value",
           *               "description": "Gives the value of a key.",
           *               "category": "core",
           *               "required_permissions": [],
           *               "required_oauth_scopes": [],
           *               "version": "1.0.0",
           *               "transport": "api",
           *               "auth_modes": [
           *                 "none"
           *               ],
           *               "default_auth_mode": "none",
           *               "input_schema": {
           *                 "type": "object",
           *                 "properties": {
           *                   "key": {
           *                     "type": "string"
           *                   }
           *                 },
           *                 "required": [
           *                   "key"
           *                 ]
           *               },
           *               "output_schema": {
           *                 "type": "object"
           *               },
           *               "primary_output": "value",
           *               "input_sample": {
           *                 "key": "last_order"
           *               },
           *               "output_sample": {
           *                 "found": true,
           *                 "value": "o_1"
           *               },
           *               "rate_limit": null
           *             }
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["ActionProviders"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listActions: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description false leaves out what is disabled */
        include_disabled?: boolean
        /** @description Rows in a page; less than 1 is taken as 1, more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *           "team_id": "tm_demo",
           *           "name": "Post to ledger",
           *           "type": "ACTION",
           *           "status": "enabled",
           *           "disabled_at": null,
           *           "held_until": null,
           *           "provider_key": "http",
           *           "action_key": "request",
           *           "config": {
           *             "auth_mode": "bearer",
           *             "provider_account_id": null,
           *             "credentials_configured": true,
           *             "schema_version": "1.0.0",
           *             "schema_provenance": "catalog",
           *             "inputs": {
           *               "method": "POST",
           *               "url": "https://ledger.example.com/entries"
           *             },
           *             "rate_limit": 5,
           *             "rate_limit_period": "second"
           *           },
           *           "workflow_steps_count": 0,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Action"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertAction: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Post to ledger",
         *       "provider_key": "http",
         *       "action_key": "request",
         *       "auth_mode": "bearer",
         *       "credentials": {
         *         "token": "a-token-of-the-ledger"
         *       },
         *       "inputs": {
         *         "method": "POST",
         *         "url": "https://ledger.example.com/entries"
         *       },
         *       "rate_limit": 5
         *     }
         */
        "application/json": components["schemas"]["ActionWrite"]
      }
    }
    responses: {
      /** @description Action */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": null,
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "POST",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createAction: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Post to ledger",
         *       "provider_key": "http",
         *       "action_key": "request",
         *       "auth_mode": "bearer",
         *       "credentials": {
         *         "token": "a-token-of-the-ledger"
         *       },
         *       "inputs": {
         *         "method": "POST",
         *         "url": "https://ledger.example.com/entries"
         *       },
         *       "rate_limit": 5
         *     }
         */
        "application/json": components["schemas"]["ActionWrite"]
      }
    }
    responses: {
      /** @description Action */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": null,
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "POST",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getAction: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The action's id
         * @example act_01kak1z6s6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Action */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": null,
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "POST",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteAction: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The action's id
         * @example act_01kak1z6s6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateAction: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The action's id
         * @example act_01kak1z6s6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "inputs": {
         *         "method": "PUT",
         *         "url": "https://ledger.example.com/entries"
         *       }
         *     }
         */
        "application/json": components["schemas"]["ActionPatch"]
      }
    }
    responses: {
      /** @description Action */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": null,
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "PUT",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  disableAction: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The action's id
         * @example act_01kak1z6s6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Action */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": "2026-01-01T00:00:00.000Z",
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "POST",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  enableAction: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The action's id
         * @example act_01kak1z6s6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Action */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "act_01kak1z6s6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "name": "Post to ledger",
           *       "type": "ACTION",
           *       "status": "enabled",
           *       "disabled_at": null,
           *       "held_until": null,
           *       "provider_key": "http",
           *       "action_key": "request",
           *       "config": {
           *         "auth_mode": "bearer",
           *         "provider_account_id": null,
           *         "credentials_configured": true,
           *         "schema_version": "1.0.0",
           *         "schema_provenance": "catalog",
           *         "inputs": {
           *           "method": "POST",
           *           "url": "https://ledger.example.com/entries"
           *         },
           *         "rate_limit": 5,
           *         "rate_limit_period": "second"
           *       },
           *       "workflow_steps_count": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Action"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listAttempts: {
    parameters: {
      query?: {
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Only attempts to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Only attempts that failed with these codes; repeat or separate by commas */
        error_code?: string[]
        /** @description Only attempts of these events; repeat or separate by commas */
        event_id?: string[]
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description What the list is ordered by */
        order_by?: "created_at"
        /** @description prev of the page after */
        prev?: string
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only attempts of this request */
        request_id?: string
        /** @description Only attempts whose answer had these statuses: 500, or 500-599; repeat or separate by commas */
        response_status?: string[]
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only those that ended so */
        status?: "SUCCESSFUL" | "FAILED"
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100,
           *         "next": null,
           *         "prev": null
           *       },
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "att_01kak204s0k0e6p9n4m2j1h3qr",
           *           "team_id": "tm_demo",
           *           "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "attempt_number": 1,
           *           "trigger": "INITIAL",
           *           "status": "SUCCESSFUL",
           *           "response_status": 200,
           *           "error_code": null,
           *           "body": "ok",
           *           "body_encoding": "text",
           *           "response_headers": {
           *             "content-type": "text/plain"
           *           },
           *           "requested_url": "https://api.example.com/hooks/orders",
           *           "http_method": "POST",
           *           "bulk_retry_id": null,
           *           "successful_at": "2026-01-01T00:00:00.180Z",
           *           "delivered_at": "2026-01-01T00:00:00.000Z",
           *           "responded_at": "2026-01-01T00:00:00.180Z",
           *           "delivery_latency": 12,
           *           "response_latency": 168,
           *           "created_at": "2026-01-01T00:00:00.180Z",
           *           "updated_at": "2026-01-01T00:00:00.180Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["Attempt"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              next: string | null
              order_by: string
              prev: string | null
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getAttempt: {
    parameters: {
      query?: {
        /** @description Where to look first */
        request_id?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The attempt's id
         * @example att_01kak204s0k0e6p9n4m2j1h3qr
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Attempt */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "att_01kak204s0k0e6p9n4m2j1h3qr",
           *       "team_id": "tm_demo",
           *       "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "attempt_number": 1,
           *       "trigger": "INITIAL",
           *       "status": "SUCCESSFUL",
           *       "response_status": 200,
           *       "error_code": null,
           *       "body": "ok",
           *       "body_encoding": "text",
           *       "response_headers": {
           *         "content-type": "text/plain"
           *       },
           *       "requested_url": "https://api.example.com/hooks/orders",
           *       "http_method": "POST",
           *       "bulk_retry_id": null,
           *       "successful_at": "2026-01-01T00:00:00.180Z",
           *       "delivered_at": "2026-01-01T00:00:00.000Z",
           *       "responded_at": "2026-01-01T00:00:00.180Z",
           *       "delivery_latency": 12,
           *       "response_latency": 168,
           *       "created_at": "2026-01-01T00:00:00.180Z",
           *       "updated_at": "2026-01-01T00:00:00.180Z"
           *     }
           */
          "application/json": components["schemas"]["Attempt"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  loginDemo: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A session that has just begun. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "token": "ses_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
           *       "user": {
           *         "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *         "email": "ada@example.com",
           *         "name": "Ada",
           *         "picture_url": null
           *       },
           *       "active_team_id": "tm_demo",
           *       "session": {
           *         "expires_at": "2026-01-08T00:00:00.000Z"
           *       },
           *       "memberships": [
           *         {
           *           "team_id": "tm_demo",
           *           "role": "owner"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["NewSession"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  login: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "id_token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
         *       "team_id": "tm_demo"
         *     }
         */
        "application/json": components["schemas"]["Login"]
      }
    }
    responses: {
      /** @description A session that has just begun. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "token": "ses_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
           *       "user": {
           *         "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *         "email": "ada@example.com",
           *         "name": "Ada",
           *         "picture_url": null
           *       },
           *       "active_team_id": "tm_demo",
           *       "session": {
           *         "expires_at": "2026-01-08T00:00:00.000Z"
           *       },
           *       "memberships": [
           *         {
           *           "team_id": "tm_demo",
           *           "role": "owner"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["NewSession"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  logout: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "ok": true
           *     }
           */
          "application/json": {
            /** @enum {boolean} */
            ok: true
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getMe: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Who is calling. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "user": {
           *         "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *         "email": "ada@example.com",
           *         "name": "Ada",
           *         "picture_url": null
           *       },
           *       "active_team_id": "tm_demo",
           *       "session": {
           *         "expires_at": "2026-01-08T00:00:00.000Z"
           *       },
           *       "memberships": [
           *         {
           *           "team_id": "tm_demo",
           *           "role": "owner"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["Session"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateMe: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Ada"
         *     }
         */
        "application/json": components["schemas"]["ProfileWrite"]
      }
    }
    responses: {
      /** @description Who is calling. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "user": {
           *         "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *         "email": "ada@example.com",
           *         "name": "Ada",
           *         "picture_url": null
           *       },
           *       "active_team_id": "tm_demo",
           *       "session": {
           *         "expires_at": "2026-01-08T00:00:00.000Z"
           *       },
           *       "memberships": [
           *         {
           *           "team_id": "tm_demo",
           *           "role": "owner"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["Session"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  watchBin: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description StreamFrame */
      101: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "type": "request",
           *       "request": {
           *         "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "status": "accepted",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "data": {
           *           "method": "POST",
           *           "path": "/orders",
           *           "query": "",
           *           "parsed_query": {},
           *           "headers": {
           *             "content-type": "application/json",
           *             "x-shop-signature": "sha256=4f2a"
           *           },
           *           "body": {
           *             "type": "order.created",
           *             "id": 1
           *           },
           *           "content_type": "application/json",
           *           "size_bytes": 31,
           *           "is_large_payload": false,
           *           "encoding": "json"
           *         }
           *       }
           *     }
           */
          "application/json": components["schemas"]["StreamFrame"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  connectTunnel: {
    parameters: {
      query: {
        /**
         * @description A CLI destination
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        destination_id: string
        /**
         * @description Where the local program is, to be shown with attempts
         * @example http://localhost:3000
         */
        local_url?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description TunnelFrame */
      101: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "type": "hello",
           *       "cli_id": "cli_01jd8z6p3k5m7n9qrs2tv4wx6y",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "heartbeat_seconds": 30,
           *       "max_in_flight": 50
           *     }
           */
          "application/json": components["schemas"]["TunnelFrame"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listConnections: {
    parameters: {
      query?: {
        /** @description Only connections to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description false leaves out what is disabled */
        include_disabled?: boolean
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
        /** @description Only paused (true) or only unpaused (false) connections */
        paused?: boolean
        /** @description Only connections of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Only this type */
        type?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "team_id": "tm_demo",
           *           "name": "shop-to-orders-api",
           *           "description": null,
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "source": {
           *             "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *             "team_id": "tm_demo",
           *             "name": "shop",
           *             "description": "Orders of the shop",
           *             "type": "WEBHOOK",
           *             "input_type": "webhook",
           *             "status": "enabled",
           *             "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *             "config": {
           *               "auth_type": "HMAC",
           *               "auth": {
           *                 "webhook_secret_key": "****shop",
           *                 "header_key": "x-shop-signature",
           *                 "algorithm": "sha256",
           *                 "encoding": "hex",
           *                 "prefix": "sha256="
           *               },
           *               "allowed_http_methods": [
           *                 "POST",
           *                 "PUT",
           *                 "PATCH",
           *                 "DELETE"
           *               ],
           *               "custom_response": null,
           *               "mode": "webhook",
           *               "proxy": null,
           *               "chat_defer_ephemeral": false,
           *               "rate_limit": null,
           *               "rate_limit_period": null
           *             },
           *             "disabled_at": null,
           *             "created_at": "2026-01-01T00:00:00.000Z",
           *             "updated_at": "2026-01-01T00:00:00.000Z"
           *           },
           *           "destination": {
           *             "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "team_id": "tm_demo",
           *             "name": "orders-api",
           *             "description": null,
           *             "type": "HTTP",
           *             "config": {
           *               "url": "https://api.example.com/hooks",
           *               "http_method": null,
           *               "path_forwarding_disabled": false,
           *               "forward_credentials": null,
           *               "rate_limit": 10,
           *               "rate_limit_period": "second",
           *               "max_concurrency": null,
           *               "auth_type": "CUSTOM_HEADER",
           *               "auth": {
           *                 "header_name": "x-token",
           *                 "value": "****-api"
           *               }
           *             },
           *             "disabled_at": null,
           *             "held_until": null,
           *             "attempts_24h_count": 42,
           *             "attempts_24h_bins": [
           *               0,
           *               0,
           *               1,
           *               4,
           *               20,
           *               17
           *             ],
           *             "created_at": "2026-01-01T00:00:00.000Z",
           *             "updated_at": "2026-01-01T00:00:00.000Z"
           *           },
           *           "rules": [
           *             {
           *               "type": "deduplicate",
           *               "window": 60000,
           *               "include_fields": [
           *                 "body.id"
           *               ]
           *             },
           *             {
           *               "type": "filter",
           *               "body": {
           *                 "type": {
           *                   "$in": [
           *                     "order.created",
           *                     "order.paid"
           *                   ]
           *                 }
           *               }
           *             },
           *             {
           *               "type": "delay",
           *               "delay": 5000
           *             },
           *             {
           *               "type": "retry",
           *               "strategy": "exponential",
           *               "count": 5,
           *               "interval": 60000,
           *               "response_status_codes": [
           *                 "429",
           *                 "500-599",
           *                 "!501"
           *               ]
           *             }
           *           ],
           *           "ordering": {
           *             "key": "body.customer.id",
           *             "on_failure": "block"
           *           },
           *           "disabled_at": null,
           *           "paused_at": null,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Connection"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertConnection: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "shop-to-orders-api",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
         *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *       "rules": [
         *         {
         *           "type": "deduplicate",
         *           "window": 60000,
         *           "include_fields": [
         *             "body.id"
         *           ]
         *         },
         *         {
         *           "type": "filter",
         *           "body": {
         *             "type": {
         *               "$in": [
         *                 "order.created",
         *                 "order.paid"
         *               ]
         *             }
         *           }
         *         },
         *         {
         *           "type": "delay",
         *           "delay": 5000
         *         },
         *         {
         *           "type": "retry",
         *           "strategy": "exponential",
         *           "count": 5,
         *           "interval": 60000,
         *           "response_status_codes": [
         *             "429",
         *             "500-599",
         *             "!501"
         *           ]
         *         }
         *       ],
         *       "ordering": {
         *         "key": "body.customer.id",
         *         "on_failure": "block"
         *       }
         *     }
         */
        "application/json": components["schemas"]["ConnectionUpsert"]
      }
    }
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createConnection: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "shop-to-orders-api",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
         *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *       "rules": [
         *         {
         *           "type": "deduplicate",
         *           "window": 60000,
         *           "include_fields": [
         *             "body.id"
         *           ]
         *         },
         *         {
         *           "type": "filter",
         *           "body": {
         *             "type": {
         *               "$in": [
         *                 "order.created",
         *                 "order.paid"
         *               ]
         *             }
         *           }
         *         },
         *         {
         *           "type": "delay",
         *           "delay": 5000
         *         },
         *         {
         *           "type": "retry",
         *           "strategy": "exponential",
         *           "count": 5,
         *           "interval": 60000,
         *           "response_status_codes": [
         *             "429",
         *             "500-599",
         *             "!501"
         *           ]
         *         }
         *       ],
         *       "ordering": {
         *         "key": "body.customer.id",
         *         "on_failure": "block"
         *       }
         *     }
         */
        "application/json": components["schemas"]["ConnectionWrite"]
      }
    }
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getConnection: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "rules": [
         *         {
         *           "type": "retry",
         *           "strategy": "linear",
         *           "count": 3,
         *           "interval": 10000
         *         }
         *       ]
         *     }
         */
        "application/json": components["schemas"]["ConnectionPatch"]
      }
    }
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "retry",
           *           "strategy": "linear",
           *           "count": 3,
           *           "interval": 10000
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  disableConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": "2026-01-01T00:00:00.000Z",
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  enableConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getLatestInput: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "latest_input": {
           *         "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "payload_key": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *         "input": {
           *           "method": "POST",
           *           "path": "/orders",
           *           "query": {},
           *           "headers": {
           *             "content-type": "application/json",
           *             "x-shop-signature": "sha256=4f2a"
           *           },
           *           "body": {
           *             "type": "order.created",
           *             "id": 1
           *           }
           *         }
           *       }
           *     }
           */
          "application/json": {
            connection_id: string
            latest_input: components["schemas"]["LatestInput"] | null
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  pauseConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": "2026-01-01T00:00:00.000Z",
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  unpauseConnection: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The connection's id
         * @example web_01kak1x7p8e5z1h4g9f7d6c8jk
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A connection with its source and its destination in full; its rules stand in the order they work in. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "team_id": "tm_demo",
           *       "name": "shop-to-orders-api",
           *       "description": null,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "destination": {
           *         "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *         "team_id": "tm_demo",
           *         "name": "orders-api",
           *         "description": null,
           *         "type": "HTTP",
           *         "config": {
           *           "url": "https://api.example.com/hooks",
           *           "http_method": null,
           *           "path_forwarding_disabled": false,
           *           "forward_credentials": null,
           *           "rate_limit": 10,
           *           "rate_limit_period": "second",
           *           "max_concurrency": null,
           *           "auth_type": "CUSTOM_HEADER",
           *           "auth": {
           *             "header_name": "x-token",
           *             "value": "****-api"
           *           }
           *         },
           *         "disabled_at": null,
           *         "held_until": null,
           *         "attempts_24h_count": 42,
           *         "attempts_24h_bins": [
           *           0,
           *           0,
           *           1,
           *           4,
           *           20,
           *           17
           *         ],
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "rules": [
           *         {
           *           "type": "deduplicate",
           *           "window": 60000,
           *           "include_fields": [
           *             "body.id"
           *           ]
           *         },
           *         {
           *           "type": "filter",
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.created",
           *                 "order.paid"
           *               ]
           *             }
           *           }
           *         },
           *         {
           *           "type": "delay",
           *           "delay": 5000
           *         },
           *         {
           *           "type": "retry",
           *           "strategy": "exponential",
           *           "count": 5,
           *           "interval": 60000,
           *           "response_status_codes": [
           *             "429",
           *             "500-599",
           *             "!501"
           *           ]
           *         }
           *       ],
           *       "ordering": {
           *         "key": "body.customer.id",
           *         "on_failure": "block"
           *       },
           *       "disabled_at": null,
           *       "paused_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Connection"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listDestinations: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description false leaves out what is disabled */
        include_disabled?: boolean
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
        /** @description Only this type */
        type?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "team_id": "tm_demo",
           *           "name": "orders-api",
           *           "description": null,
           *           "type": "HTTP",
           *           "config": {
           *             "url": "https://api.example.com/hooks",
           *             "http_method": null,
           *             "path_forwarding_disabled": false,
           *             "forward_credentials": null,
           *             "rate_limit": 10,
           *             "rate_limit_period": "second",
           *             "max_concurrency": null,
           *             "auth_type": "CUSTOM_HEADER",
           *             "auth": {
           *               "header_name": "x-token",
           *               "value": "****-api"
           *             }
           *           },
           *           "disabled_at": null,
           *           "held_until": null,
           *           "attempts_24h_count": 42,
           *           "attempts_24h_bins": [
           *             0,
           *             0,
           *             1,
           *             4,
           *             20,
           *             17
           *           ],
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Destination"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertDestination: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "orders-api",
         *       "type": "HTTP",
         *       "config": {
         *         "url": "https://api.example.com/hooks",
         *         "rate_limit": 10,
         *         "rate_limit_period": "second",
         *         "auth_type": "CUSTOM_HEADER",
         *         "auth": {
         *           "header_name": "x-token",
         *           "value": "known-to-the-api"
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["DestinationWrite"]
      }
    }
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createDestination: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "orders-api",
         *       "type": "HTTP",
         *       "config": {
         *         "url": "https://api.example.com/hooks",
         *         "rate_limit": 10,
         *         "rate_limit_period": "second",
         *         "auth_type": "CUSTOM_HEADER",
         *         "auth": {
         *           "header_name": "x-token",
         *           "value": "known-to-the-api"
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["DestinationWrite"]
      }
    }
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getDestination: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  replaceDestination: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "orders-api",
         *       "type": "HTTP",
         *       "config": {
         *         "url": "https://api.example.com/hooks",
         *         "rate_limit": 10,
         *         "rate_limit_period": "second",
         *         "auth_type": "CUSTOM_HEADER",
         *         "auth": {
         *           "header_name": "x-token",
         *           "value": "known-to-the-api"
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["DestinationWrite"]
      }
    }
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteDestination: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateDestination: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "config": {
         *         "rate_limit": 5
         *       }
         *     }
         */
        "application/json": components["schemas"]["DestinationPatch"]
      }
    }
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 5,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  disableDestination: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": "2026-01-01T00:00:00.000Z",
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  enableDestination: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "team_id": "tm_demo",
           *       "name": "orders-api",
           *       "description": null,
           *       "type": "HTTP",
           *       "config": {
           *         "url": "https://api.example.com/hooks",
           *         "http_method": null,
           *         "path_forwarding_disabled": false,
           *         "forward_credentials": null,
           *         "rate_limit": 10,
           *         "rate_limit_period": "second",
           *         "max_concurrency": null,
           *         "auth_type": "CUSTOM_HEADER",
           *         "auth": {
           *           "header_name": "x-token",
           *           "value": "****-api"
           *         }
           *       },
           *       "disabled_at": null,
           *       "held_until": null,
           *       "attempts_24h_count": 42,
           *       "attempts_24h_bins": [
           *         0,
           *         0,
           *         1,
           *         4,
           *         20,
           *         17
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Destination"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  startDestinationConsent: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The destination's id
         * @example des_01kak1w2n4d4y0g3f8e6c5b7hj
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Somebody opens authorization_url in a browser before expires_at, and is led back to redirect_uri. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "authorization_url": "https://id.example.com/authorize?response_type=code&client_id=gateway&state=des_01kak1w2n4d4y0g3f8e6c5b7hj.…",
           *       "redirect_uri": "https://gateway.example.com/v1/oauth/callback",
           *       "expires_at": "2026-01-01T00:00:00.180Z"
           *     }
           */
          "application/json": components["schemas"]["ConsentStarted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listEvents: {
    parameters: {
      query?: {
        /** @description Follows events as they are stored, without loss: now, or next_cursor of the page before */
        after?: string
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Of the bulk operation: the events it made (retries, unless told), those it retried (targets), or both */
        batch_operation_scope?: "retries" | "targets" | "related"
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only events of these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Only events to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Only events whose last attempt failed with these codes; repeat or separate by commas */
        error_code?: string[]
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description What to show of each row beyond its record; repeat or separate by commas */
        include?: "data"[]
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Rows in a page; more than 100 is taken as 100 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only events of these requests, whenever they were made unless a window is given; repeat or separate by commas */
        request_id?: string[]
        /** @description Whether a later retry of it has succeeded */
        resolved?: boolean
        /** @description Only events whose last answer had these statuses: 500, or 500-599; repeat or separate by commas */
        response_status?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only events of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only events of these states; repeat or separate by commas */
        status?: ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")[]
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 1,
           *       "total_exact": true,
           *       "limit": 100,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       },
           *       "next_cursor": null,
           *       "next": null,
           *       "prev": null,
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "team_id": "tm_demo",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "cli_id": null,
           *           "event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "status": "SUCCESSFUL",
           *           "rejection_cause": null,
           *           "failure_message": null,
           *           "ignored_reason": null,
           *           "attempts": 1,
           *           "response_status": 200,
           *           "error_code": null,
           *           "last_attempt_at": "2026-01-01T00:00:00.180Z",
           *           "next_attempt_at": null,
           *           "successful_at": "2026-01-01T00:00:00.180Z",
           *           "is_retry": false,
           *           "retry_kind": null,
           *           "retry_parent_event_id": null,
           *           "retry_operation_id": null,
           *           "retried_at": null,
           *           "resolved_at": null,
           *           "resolved_by_event_id": null,
           *           "ingested_at": "2026-01-01T00:00:00.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "stored_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.180Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            applied_range: {
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              from: string
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              to: string
            }
            count: number
            /** @description Of a feed: whether there are more to be read now */
            has_more?: boolean
            limit: number
            models: components["schemas"]["Event"][]
            next: string | null
            next_cursor: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            prev: string | null
            total: number
            total_exact: boolean
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getEvent: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The event's id
         * @example evt_01kak203r6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Event */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *       "team_id": "tm_demo",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "cli_id": null,
           *       "event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *       "status": "SUCCESSFUL",
           *       "rejection_cause": null,
           *       "failure_message": null,
           *       "ignored_reason": null,
           *       "attempts": 1,
           *       "response_status": 200,
           *       "error_code": null,
           *       "last_attempt_at": "2026-01-01T00:00:00.180Z",
           *       "next_attempt_at": null,
           *       "successful_at": "2026-01-01T00:00:00.180Z",
           *       "is_retry": false,
           *       "retry_kind": null,
           *       "retry_parent_event_id": null,
           *       "retry_operation_id": null,
           *       "retried_at": null,
           *       "resolved_at": null,
           *       "resolved_by_event_id": null,
           *       "ingested_at": "2026-01-01T00:00:00.000Z",
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "stored_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.180Z",
           *       "data": {
           *         "request": {
           *           "method": "POST",
           *           "url": "https://api.example.com/hooks/orders",
           *           "path": "/orders",
           *           "query": "",
           *           "headers": {
           *             "content-type": "application/json",
           *             "x-shop-signature": "sha256=4f2a"
           *           },
           *           "body": {
           *             "type": "order.created",
           *             "id": 1
           *           },
           *           "encoding": "json",
           *           "is_large_payload": false
           *         },
           *         "response": {
           *           "status": 200,
           *           "headers": {
           *             "content-type": "text/plain"
           *           },
           *           "body": "ok",
           *           "encoding": "text"
           *         }
           *       }
           *     }
           */
          "application/json": components["schemas"]["Event"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  retryEvent: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The event's id
         * @example evt_01kak203r6h8c4m7k2j0g9f1np
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description replay_event_id is the new event, event_id the one it repeats. */
      202: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "ok": true,
           *       "queued": true,
           *       "transport": "queue",
           *       "retried_at": "2026-01-01T00:00:00.180Z",
           *       "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *       "replay_event_id": "evt_01kak25zt4n2g8r1q6p4m3k5st"
           *     }
           */
          "application/json": components["schemas"]["RetryAccepted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listEventBulkOperations: {
    parameters: {
      query?: {
        /** @description Only those that are not at their end (ongoing), or that are (history) */
        bucket?: "all" | "ongoing" | "history"
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of bucket */
        view?: "all" | "ongoing" | "history"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *           "team_id": "tm_demo",
           *           "type": "event_bulk_retry",
           *           "status": "RUNNING",
           *           "filter": {
           *             "from": "2025-12-31T23:00:00.000Z",
           *             "to": "2026-01-01T00:00:00.000Z",
           *             "status": [
           *               "FAILED"
           *             ],
           *             "connection_id": [
           *               "web_01kak1x7p8e5z1h4g9f7d6c8jk"
           *             ],
           *             "resolved": false
           *           },
           *           "rate": null,
           *           "confirmed": true,
           *           "requested_by": null,
           *           "total_count": 120,
           *           "queued_count": 50,
           *           "done_count": 50,
           *           "failed_count": 2,
           *           "sample": [
           *             "evt_01kak203r6h8c4m7k2j0g9f1np"
           *           ],
           *           "error": null,
           *           "cancelable": true,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "planned_at": "2026-01-01T00:00:00.000Z",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": null
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["BulkOperation"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "from": "now-1h",
         *       "to": "now",
         *       "status": "FAILED",
         *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk"
         *     }
         */
        "application/json": components["schemas"]["EventBulkRetry"]
      }
    }
    responses: {
      /** @description BulkOperation */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "FAILED"
           *         ],
           *         "connection_id": [
           *           "web_01kak1x7p8e5z1h4g9f7d6c8jk"
           *         ],
           *         "resolved": false
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "FAILED"
           *         ],
           *         "connection_id": [
           *           "web_01kak1x7p8e5z1h4g9f7d6c8jk"
           *         ],
           *         "resolved": false
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  cancelEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "event_bulk_retry",
           *       "status": "CANCELLED",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "FAILED"
           *         ],
           *         "connection_id": [
           *           "web_01kak1x7p8e5z1h4g9f7d6c8jk"
           *         ],
           *         "resolved": false
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": false,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  runEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "FAILED"
           *         ],
           *         "connection_id": [
           *           "web_01kak1x7p8e5z1h4g9f7d6c8jk"
           *         ],
           *         "resolved": false
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  countEvents: {
    parameters: {
      query?: {
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Of the bulk operation: the events it made (retries, unless told), those it retried (targets), or both */
        batch_operation_scope?: "retries" | "targets" | "related"
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only events of these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description Only events to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Only events whose last attempt failed with these codes; repeat or separate by commas */
        error_code?: string[]
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only events of these requests, whenever they were made unless a window is given; repeat or separate by commas */
        request_id?: string[]
        /** @description Whether a later retry of it has succeeded */
        resolved?: boolean
        /** @description Only events whose last answer had these statuses: 500, or 500-599; repeat or separate by commas */
        response_status?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only events of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only events of these states; repeat or separate by commas */
        status?: ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")[]
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description EventCount */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 42,
           *       "count": 42,
           *       "total_exact": true,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": components["schemas"]["EventCount"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listFilters: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Rows in a page; less than 1 is taken as 1, more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *           "team_id": "tm_demo",
           *           "name": "paid-orders",
           *           "conditions": {
           *             "headers": {
           *               "x-env": "prod"
           *             },
           *             "body": {
           *               "type": {
           *                 "$in": [
           *                   "order.paid",
           *                   "order.captured"
           *                 ]
           *               },
           *               "total": {
           *                 "$gte": 100
           *               }
           *             }
           *           },
           *           "headers": {
           *             "x-env": "prod"
           *           },
           *           "body": {
           *             "type": {
           *               "$in": [
           *                 "order.paid",
           *                 "order.captured"
           *               ]
           *             },
           *             "total": {
           *               "$gte": 100
           *             }
           *           },
           *           "query": null,
           *           "path": null,
           *           "connections_count": 1,
           *           "sample_connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "workflow_steps_count": 0,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["ListedFilter"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertFilter: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "paid-orders",
         *       "conditions": {
         *         "headers": {
         *           "x-env": "prod"
         *         },
         *         "body": {
         *           "type": {
         *             "$in": [
         *               "order.paid",
         *               "order.captured"
         *             ]
         *           },
         *           "total": {
         *             "$gte": 100
         *           }
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["FilterWrite"]
      }
    }
    responses: {
      /** @description A stored filter with the connections that link it, at most 100 of them. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "name": "paid-orders",
           *       "conditions": {
           *         "headers": {
           *           "x-env": "prod"
           *         },
           *         "body": {
           *           "type": {
           *             "$in": [
           *               "order.paid",
           *               "order.captured"
           *             ]
           *           },
           *           "total": {
           *             "$gte": 100
           *           }
           *         }
           *       },
           *       "headers": {
           *         "x-env": "prod"
           *       },
           *       "body": {
           *         "type": {
           *           "$in": [
           *             "order.paid",
           *             "order.captured"
           *           ]
           *         },
           *         "total": {
           *           "$gte": 100
           *         }
           *       },
           *       "query": null,
           *       "path": null,
           *       "connections_count": 1,
           *       "sample_connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "workflow_steps_count": 0,
           *       "connections": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "name": "shop-to-orders-api",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "disabled_at": null,
           *           "paused_at": null
           *         }
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Filter"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createFilter: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "paid-orders",
         *       "conditions": {
         *         "headers": {
         *           "x-env": "prod"
         *         },
         *         "body": {
         *           "type": {
         *             "$in": [
         *               "order.paid",
         *               "order.captured"
         *             ]
         *           },
         *           "total": {
         *             "$gte": 100
         *           }
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["FilterWrite"]
      }
    }
    responses: {
      /** @description A stored filter with the connections that link it, at most 100 of them. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "name": "paid-orders",
           *       "conditions": {
           *         "headers": {
           *           "x-env": "prod"
           *         },
           *         "body": {
           *           "type": {
           *             "$in": [
           *               "order.paid",
           *               "order.captured"
           *             ]
           *           },
           *           "total": {
           *             "$gte": 100
           *           }
           *         }
           *       },
           *       "headers": {
           *         "x-env": "prod"
           *       },
           *       "body": {
           *         "type": {
           *           "$in": [
           *             "order.paid",
           *             "order.captured"
           *           ]
           *         },
           *         "total": {
           *           "$gte": 100
           *         }
           *       },
           *       "query": null,
           *       "path": null,
           *       "connections_count": 1,
           *       "sample_connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "workflow_steps_count": 0,
           *       "connections": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "name": "shop-to-orders-api",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "disabled_at": null,
           *           "paused_at": null
           *         }
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Filter"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getFilter: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The filter's id
         * @example flt_01kak1z4r5g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A stored filter with the connections that link it, at most 100 of them. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "name": "paid-orders",
           *       "conditions": {
           *         "headers": {
           *           "x-env": "prod"
           *         },
           *         "body": {
           *           "type": {
           *             "$in": [
           *               "order.paid",
           *               "order.captured"
           *             ]
           *           },
           *           "total": {
           *             "$gte": 100
           *           }
           *         }
           *       },
           *       "headers": {
           *         "x-env": "prod"
           *       },
           *       "body": {
           *         "type": {
           *           "$in": [
           *             "order.paid",
           *             "order.captured"
           *           ]
           *         },
           *         "total": {
           *           "$gte": 100
           *         }
           *       },
           *       "query": null,
           *       "path": null,
           *       "connections_count": 1,
           *       "sample_connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "workflow_steps_count": 0,
           *       "connections": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "name": "shop-to-orders-api",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "disabled_at": null,
           *           "paused_at": null
           *         }
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Filter"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteFilter: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The filter's id
         * @example flt_01kak1z4r5g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description FilterDeleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *       "deleted": true,
           *       "detached_connections": 1
           *     }
           */
          "application/json": components["schemas"]["FilterDeleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateFilter: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The filter's id
         * @example flt_01kak1z4r5g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "conditions": {
         *         "body": {
         *           "type": "order.paid"
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["FilterPatch"]
      }
    }
    responses: {
      /** @description A stored filter with the connections that link it, at most 100 of them. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "name": "paid-orders",
           *       "conditions": {
           *         "body": {
           *           "type": "order.paid"
           *         }
           *       },
           *       "headers": {
           *         "x-env": "prod"
           *       },
           *       "body": {
           *         "type": {
           *           "$in": [
           *             "order.paid",
           *             "order.captured"
           *           ]
           *         },
           *         "total": {
           *           "$gte": 100
           *         }
           *       },
           *       "query": null,
           *       "path": null,
           *       "connections_count": 1,
           *       "sample_connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "workflow_steps_count": 0,
           *       "connections": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "name": "shop-to-orders-api",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "disabled_at": null,
           *           "paused_at": null
           *         }
           *       ],
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Filter"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  testFilter: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "conditions": {
         *         "body": {
         *           "total": {
         *             "$gte": 100
         *           }
         *         }
         *       },
         *       "request": {
         *         "headers": {
         *           "content-type": "application/json"
         *         },
         *         "body": {
         *           "total": "120.00"
         *         },
         *         "query": {},
         *         "path": "/orders"
         *       }
         *     }
         */
        "application/json": components["schemas"]["FilterTestInput"]
      }
    }
    responses: {
      /** @description FilterTest */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "matched": true,
           *       "targets": {
           *         "headers": null,
           *         "body": true,
           *         "query": null,
           *         "path": null
           *       },
           *       "explanation": [
           *         {
           *           "target": "body",
           *           "path": "total",
           *           "operator": "$gte",
           *           "expected": 100,
           *           "actual": "120.00",
           *           "matched": true
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["FilterTest"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listAllIgnoredEvents: {
    parameters: {
      query?: {
        /** @description Only what was ignored for these reasons; repeat or separate by commas */
        cause?: (
          | "FILTERED"
          | "TRANSFORMATION_FAILED"
          | "DEDUPLICATED"
          | "HANDSHAKE"
          | "DISABLED"
          | "CLI_DISCONNECTED"
          | "PROCESS_ENDED"
        )[]
        /** @description Only of these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Rows in a page; more than 100 is taken as 100 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Only of these requests; repeat or separate by commas */
        request_id?: string[]
        /** @description Only of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 1,
           *       "total_exact": true,
           *       "limit": 100,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       },
           *       "next_cursor": null,
           *       "next": null,
           *       "prev": null,
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "ign_01kak203r6j9d5n8m3k1h0g2pq",
           *           "team_id": "tm_demo",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "cause": "FILTERED",
           *           "meta": [
           *             "body"
           *           ],
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            applied_range: {
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              from: string
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              to: string
            }
            count: number
            /** @description Of a feed: whether there are more to be read now */
            has_more?: boolean
            limit: number
            models: components["schemas"]["IgnoredEvent"][]
            next: string | null
            next_cursor: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            prev: string | null
            total: number
            total_exact: boolean
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listIgnoredEventBulkOperations: {
    parameters: {
      query?: {
        /** @description Only those that are not at their end (ongoing), or that are (history) */
        bucket?: "all" | "ongoing" | "history"
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of bucket */
        view?: "all" | "ongoing" | "history"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *           "team_id": "tm_demo",
           *           "type": "ignored_event_bulk_retry",
           *           "status": "RUNNING",
           *           "filter": {
           *             "from": "2025-12-31T23:00:00.000Z",
           *             "to": "2026-01-01T00:00:00.000Z",
           *             "cause": [
           *               "TRANSFORMATION_FAILED"
           *             ]
           *           },
           *           "rate": null,
           *           "confirmed": true,
           *           "requested_by": null,
           *           "total_count": 120,
           *           "queued_count": 50,
           *           "done_count": 50,
           *           "failed_count": 2,
           *           "sample": [
           *             "evt_01kak203r6h8c4m7k2j0g9f1np"
           *           ],
           *           "error": null,
           *           "cancelable": true,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "planned_at": "2026-01-01T00:00:00.000Z",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": null
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["BulkOperation"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createIgnoredEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "from": "now-1h",
         *       "to": "now",
         *       "cause": "TRANSFORMATION_FAILED",
         *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk"
         *     }
         */
        "application/json": components["schemas"]["IgnoredEventBulkRetry"]
      }
    }
    responses: {
      /** @description BulkOperation */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "ignored_event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "cause": [
           *           "TRANSFORMATION_FAILED"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getIgnoredEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "ignored_event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "cause": [
           *           "TRANSFORMATION_FAILED"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  cancelIgnoredEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "ignored_event_bulk_retry",
           *       "status": "CANCELLED",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "cause": [
           *           "TRANSFORMATION_FAILED"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": false,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  runIgnoredEventBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "ignored_event_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "cause": [
           *           "TRANSFORMATION_FAILED"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  countIgnoredEvents: {
    parameters: {
      query?: {
        /** @description Only what was ignored for these reasons; repeat or separate by commas */
        cause?: (
          | "FILTERED"
          | "TRANSFORMATION_FAILED"
          | "DEDUPLICATED"
          | "HANDSHAKE"
          | "DISABLED"
          | "CLI_DISCONNECTED"
          | "PROCESS_ENDED"
        )[]
        /** @description Only of these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Only of these requests; repeat or separate by commas */
        request_id?: string[]
        /** @description Only of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description EventCount */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 42,
           *       "count": 42,
           *       "total_exact": true,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": components["schemas"]["EventCount"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getConnectionMetrics: {
    parameters: {
      query?: {
        /** @description Alias of id; repeat or separate by commas */
        connection_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        connection_ids?: string[]
        /**
         * @description Whose rows; required under one of its names; repeat or separate by commas
         * @example [
         *       "web_01kak1x7p8e5z1h4g9f7d6c8jk"
         *     ]
         */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Alias of id; repeat or separate by commas */
        webhook_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        webhook_ids?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "events_24h_count": 12,
           *           "events_24h_successful_count": 10,
           *           "events_24h_failed_count": 1,
           *           "events_24h_pending_count": 1,
           *           "events_24h_cancelled_count": 0,
           *           "events_24h_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             5,
           *             1
           *           ],
           *           "events_24h_successful_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             4,
           *             0
           *           ],
           *           "events_24h_failed_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             1,
           *             0
           *           ],
           *           "events_24h_pending_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             1
           *           ],
           *           "events_24h_cancelled_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["ConnectionMetrics"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getDestinationMetrics: {
    parameters: {
      query?: {
        /** @description Alias of id; repeat or separate by commas */
        destination_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        destination_ids?: string[]
        /**
         * @description Whose rows; required under one of its names; repeat or separate by commas
         * @example [
         *       "des_01kak1w2n4d4y0g3f8e6c5b7hj"
         *     ]
         */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "connections_count": 1,
           *           "attempts_24h_count": 14,
           *           "attempts_24h_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             7,
           *             1
           *           ],
           *           "events_24h_count": 12,
           *           "events_24h_successful_count": 10,
           *           "events_24h_failed_count": 1,
           *           "events_24h_pending_count": 1,
           *           "events_24h_cancelled_count": 0,
           *           "events_24h_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             5,
           *             1
           *           ],
           *           "events_24h_successful_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             4,
           *             0
           *           ],
           *           "events_24h_failed_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             1,
           *             0
           *           ],
           *           "events_24h_pending_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             1
           *           ],
           *           "events_24h_cancelled_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["DestinationMetrics"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getEventMetrics: {
    parameters: {
      query?: {
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Of the bulk operation: the events it made (retries, unless told), those it retried (targets), or both */
        batch_operation_scope?: "retries" | "targets" | "related"
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only events of these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description Only events to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Only events whose last attempt failed with these codes; repeat or separate by commas */
        error_code?: string[]
        /**
         * @description Start of the range, required under one of its names: ISO 8601, now, or now-<n><s|m|h|d>
         * @example now-30m
         */
        from?: string
        /** @description How long a bucket is; the finest with at most 300 buckets unless told */
        granularity?: "1s" | "5s" | "10s" | "30s" | "1m" | "5m" | "15m" | "1h"
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Alias of measures; repeat or separate by commas */
        measure?: (
          | "count"
          | "delivered_count"
          | "failed_count"
          | "queued_count"
          | "processing_count"
          | "hold_count"
          | "ignored_count"
        )[]
        /** @description Only these measures; all unless told; repeat or separate by commas */
        measures?: (
          | "count"
          | "delivered_count"
          | "failed_count"
          | "queued_count"
          | "processing_count"
          | "hold_count"
          | "ignored_count"
        )[]
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only events of these requests, whenever they were made unless a window is given; repeat or separate by commas */
        request_id?: string[]
        /** @description Whether a later retry of it has succeeded */
        resolved?: boolean
        /** @description Only events whose last answer had these statuses: 500, or 500-599; repeat or separate by commas */
        response_status?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only events of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only events of these states; repeat or separate by commas */
        status?: ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")[]
        /**
         * @description End of the range, required under one of its names: ISO 8601, now, or now-<n><s|m|h|d>
         * @example now
         */
        to?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description EventSeries */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "date_range": {
           *         "start": "2026-01-01T00:00:00.000Z",
           *         "end": "2026-01-01T00:02:00.000Z"
           *       },
           *       "granularity": "1m",
           *       "partial": false,
           *       "series": [
           *         {
           *           "timestamp": "2026-01-01T00:00:00.000Z",
           *           "count": 4,
           *           "delivered_count": 3,
           *           "failed_count": 1,
           *           "queued_count": 0,
           *           "processing_count": 0,
           *           "hold_count": 0,
           *           "ignored_count": 2
           *         },
           *         {
           *           "timestamp": "2026-01-01T00:01:00.000Z",
           *           "count": 0,
           *           "delivered_count": 0,
           *           "failed_count": 0,
           *           "queued_count": 0,
           *           "processing_count": 0,
           *           "hold_count": 0,
           *           "ignored_count": 0
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["EventSeries"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getRequestMetrics: {
    parameters: {
      query?: {
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only requests that went to these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /**
         * @description Start of the range, required under one of its names: ISO 8601, now, or now-<n><s|m|h|d>
         * @example now-30m
         */
        from?: string
        /** @description How long a bucket is; the finest with at most 300 buckets unless told */
        granularity?: "1s" | "5s" | "10s" | "30s" | "1m" | "5m" | "15m" | "1h"
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Alias of measures; repeat or separate by commas */
        measure?: ("count" | "accepted_count" | "rejected_count")[]
        /** @description Only these measures; all unless told; repeat or separate by commas */
        measures?: ("count" | "accepted_count" | "rejected_count")[]
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only requests that were rejected for these causes; repeat or separate by commas */
        rejection_cause?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only requests of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only those that were let in, or were not */
        status?: "accepted" | "rejected"
        /**
         * @description End of the range, required under one of its names: ISO 8601, now, or now-<n><s|m|h|d>
         * @example now
         */
        to?: string
        /** @description Whether verification ran and passed */
        verified?: boolean
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description RequestSeries */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "date_range": {
           *         "start": "2026-01-01T00:00:00.000Z",
           *         "end": "2026-01-01T00:02:00.000Z"
           *       },
           *       "granularity": "1m",
           *       "partial": false,
           *       "series": [
           *         {
           *           "timestamp": "2026-01-01T00:00:00.000Z",
           *           "count": 3,
           *           "accepted_count": 2,
           *           "rejected_count": 1
           *         },
           *         {
           *           "timestamp": "2026-01-01T00:01:00.000Z",
           *           "count": 0,
           *           "accepted_count": 0,
           *           "rejected_count": 0
           *         }
           *       ],
           *       "unavailable_shard_count": 0
           *     }
           */
          "application/json": components["schemas"]["RequestSeries"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getSourceMetrics: {
    parameters: {
      query?: {
        /**
         * @description Whose rows; required under one of its names; repeat or separate by commas
         * @example [
         *       "src_01kak1v8m0c3x9f2e7d5b4a6gh"
         *     ]
         */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Alias of id; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        source_ids?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "connections_count": 1,
           *           "requests_24h_count": 13,
           *           "requests_24h_total_count": 13,
           *           "requests_24h_accepted_count": 12,
           *           "requests_24h_rejected_count": 1,
           *           "requests_24h_accepted_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             5,
           *             1
           *           ],
           *           "requests_24h_rejected_bins": [
           *             1,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ],
           *           "events_24h_count": 12,
           *           "events_24h_successful_count": 10,
           *           "events_24h_failed_count": 1,
           *           "events_24h_pending_count": 1,
           *           "events_24h_cancelled_count": 0,
           *           "events_24h_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             5,
           *             1
           *           ],
           *           "events_24h_successful_bins": [
           *             0,
           *             0,
           *             2,
           *             4,
           *             4,
           *             0
           *           ],
           *           "events_24h_failed_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             1,
           *             0
           *           ],
           *           "events_24h_pending_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             1
           *           ],
           *           "events_24h_cancelled_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["SourceMetrics"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getTransformationMetrics: {
    parameters: {
      query?: {
        /**
         * @description Whose rows; required under one of its names; repeat or separate by commas
         * @example [
         *       "trs_01kak1y3q2f6a2j5h0g8e7d9km"
         *     ]
         */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Alias of id; repeat or separate by commas */
        transformation_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        transformation_ids?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *           "transformation_id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *           "connections_count": 1,
           *           "executions_24h_count": 12,
           *           "executions_24h_successful_count": 12,
           *           "executions_24h_failed_count": 0,
           *           "executions_24h_successful_bins": [
           *             0,
           *             0,
           *             0,
           *             2,
           *             4,
           *             6
           *           ],
           *           "executions_24h_failed_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["TransformationMetrics"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getWorkflowMetrics: {
    parameters: {
      query?: {
        /**
         * @description Whose rows; required under one of its names; repeat or separate by commas
         * @example [
         *       "wfl_01kak1z4r3g7b3k6j1h9f8e0mn"
         *     ]
         */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Alias of id; repeat or separate by commas */
        workflow_id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        workflow_ids?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *           "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *           "runs_24h_count": 6,
           *           "runs_24h_failed_count": 1,
           *           "bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             2,
           *             3,
           *             1
           *           ],
           *           "avg_duration_ms": 900
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["WorkflowMetrics"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  showDestinationConsent: {
    parameters: {
      query?: {
        /** @description What it has brought */
        code?: string
        /** @description What the page sends back when somebody has said yes there */
        confirmed?: string
        /** @description Why it has brought none */
        error?: string
        /** @description What the consent was begun with */
        state?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /** @example <!doctype html> … <h1>Do you consent?</h1> … */
          "text/html": string
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  endDestinationConsent: {
    parameters: {
      query?: {
        /** @description What it has brought */
        code?: string
        /** @description What the page sends back when somebody has said yes there */
        confirmed?: string
        /** @description Why it has brought none */
        error?: string
        /** @description What the consent was begun with */
        state?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description ConsentEnded */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "authorized": true,
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "renewable": true
           *     }
           */
          "application/json": components["schemas"]["ConsentEnded"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listProjectKeys: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "pak_0123456789abcdef0123456789abcdef",
           *           "team_id": "tm_demo",
           *           "name": "ci",
           *           "masked_key": "gwp_7Qm2Xc9A_****",
           *           "status": "active",
           *           "scopes": [
           *             "control:read",
           *             "control:execute"
           *           ],
           *           "execute_grants": [
           *             "POST:/v1/events/:id/retry"
           *           ],
           *           "rate_limit_per_minute": 240,
           *           "last_used_at": null,
           *           "secret_last_rotated_at": "2026-01-01T00:00:00.000Z",
           *           "revoked_at": null,
           *           "legacy_project_secret": false,
           *           "created_by_user_id": "usr_demo",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["ProjectKey"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createProjectKey: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "ci",
         *       "scopes": [
         *         "control:read",
         *         "control:execute"
         *       ],
         *       "execute_grants": [
         *         "POST:/v1/events/:id/retry"
         *       ],
         *       "rate_limit_per_minute": 240
         *     }
         */
        "application/json": components["schemas"]["ProjectKeyWrite"]
      }
    }
    responses: {
      /** @description Success */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "pak_0123456789abcdef0123456789abcdef",
           *         "team_id": "tm_demo",
           *         "name": "ci",
           *         "masked_key": "gwp_7Qm2Xc9A_****",
           *         "status": "active",
           *         "scopes": [
           *           "control:read",
           *           "control:execute"
           *         ],
           *         "execute_grants": [
           *           "POST:/v1/events/:id/retry"
           *         ],
           *         "rate_limit_per_minute": 240,
           *         "last_used_at": null,
           *         "secret_last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "revoked_at": null,
           *         "legacy_project_secret": false,
           *         "created_by_user_id": "usr_demo",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z",
           *         "api_key": "gwp_7Qm2Xc9A_EXAMPLEexampleEXAMPLEexample00002JcXwk"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["NewProjectKey"]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getProjectKey: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The key's id
         * @example pak_0123456789abcdef0123456789abcdef
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "pak_0123456789abcdef0123456789abcdef",
           *         "team_id": "tm_demo",
           *         "name": "ci",
           *         "masked_key": "gwp_7Qm2Xc9A_****",
           *         "status": "active",
           *         "scopes": [
           *           "control:read",
           *           "control:execute"
           *         ],
           *         "execute_grants": [
           *           "POST:/v1/events/:id/retry"
           *         ],
           *         "rate_limit_per_minute": 240,
           *         "last_used_at": null,
           *         "secret_last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "revoked_at": null,
           *         "legacy_project_secret": false,
           *         "created_by_user_id": "usr_demo",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["ProjectKey"]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  revokeProjectKey: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The key's id
         * @example pak_0123456789abcdef0123456789abcdef
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "pak_0123456789abcdef0123456789abcdef",
           *         "team_id": "tm_demo",
           *         "name": "ci",
           *         "masked_key": "gwp_7Qm2Xc9A_****",
           *         "status": "revoked",
           *         "scopes": [
           *           "control:read",
           *           "control:execute"
           *         ],
           *         "execute_grants": [
           *           "POST:/v1/events/:id/retry"
           *         ],
           *         "rate_limit_per_minute": 240,
           *         "last_used_at": null,
           *         "secret_last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "revoked_at": "2026-01-01T00:00:00.000Z",
           *         "legacy_project_secret": false,
           *         "created_by_user_id": "usr_demo",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["ProjectKey"]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateProjectKey: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The key's id
         * @example pak_0123456789abcdef0123456789abcdef
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "status": "disabled"
         *     }
         */
        "application/json": components["schemas"]["ProjectKeyPatch"]
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": {
           *         "id": "pak_0123456789abcdef0123456789abcdef",
           *         "team_id": "tm_demo",
           *         "name": "ci",
           *         "masked_key": "gwp_7Qm2Xc9A_****",
           *         "status": "disabled",
           *         "scopes": [
           *           "control:read",
           *           "control:execute"
           *         ],
           *         "execute_grants": [
           *           "POST:/v1/events/:id/retry"
           *         ],
           *         "rate_limit_per_minute": 240,
           *         "last_used_at": null,
           *         "secret_last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "revoked_at": null,
           *         "legacy_project_secret": false,
           *         "created_by_user_id": "usr_demo",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": {
            data: components["schemas"]["ProjectKey"]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listKeyDecisions: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The key's id
         * @example pak_0123456789abcdef0123456789abcdef
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": 1042,
           *           "key_id": "pak_0123456789abcdef0123456789abcdef",
           *           "team_id": "tm_demo",
           *           "route_key": "POST:/v1/events/:id/retry",
           *           "permission": "execute",
           *           "decision": "denied",
           *           "reason": "grant_missing",
           *           "count": 17,
           *           "first_seen_at": "2026-01-01T00:00:00.000Z",
           *           "last_seen_at": "2026-01-01T00:04:40.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["KeyDecisions"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getProjectSecrets: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description The team's API key and signing secret. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "team_id": "tm_demo",
           *       "api_key": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gwk_****cdef"
           *       },
           *       "signing_secret": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gws_****cdef"
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["ProjectSecrets"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  replaceProjectSecrets: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
         *     }
         */
        "application/json": components["schemas"]["ProjectSecretsWrite"]
      }
    }
    responses: {
      /** @description The team's API key and signing secret. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "team_id": "tm_demo",
           *       "api_key": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gwk_****cdef"
           *       },
           *       "signing_secret": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gws_****cdef"
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["ProjectSecrets"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  rotateProjectSecrets: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: {
      content: {
        /**
         * @example {
         *       "rotate": [
         *         "signing_secret"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["ProjectSecretsRotate"]
      }
    }
    responses: {
      /** @description The team's API key and signing secret, and what they have been changed to. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "team_id": "tm_demo",
           *       "api_key": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gwk_****cdef"
           *       },
           *       "signing_secret": {
           *         "has_secret": true,
           *         "last_rotated_at": "2026-01-01T00:00:00.000Z",
           *         "masked_value": "gws_****cdef",
           *         "value": "gws_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
           *         "whsec_value": "whsec_Z3dzXzAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["RotatedSecrets"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createPublicBin: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description NewPublicBin */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "endpoint": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "expires_at": "2026-01-01T01:00:00.000Z",
           *       "ttl_seconds": 3600,
           *       "token": "pbn_0123456789abcdef0123456789abcdef0123456789abcdef"
           *     }
           */
          "application/json": components["schemas"]["NewPublicBin"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getPublicBin: {
    parameters: {
      query?: {
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Rows in a page; more than 100 is taken as 100 */
        limit?: number
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
        /**
         * @description The bin's token
         * @example pbn_0123456789abcdef0123456789abcdef0123456789abcdef
         */
        "x-bin-token"?: string
      }
      path: {
        /**
         * @description The bin's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description PublicBin */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "endpoint": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "expires_at": "2026-01-01T01:00:00.000Z",
           *       "ttl_seconds": 3600,
           *       "requests": [
           *         {
           *           "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "status": "accepted",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "data": {
           *             "method": "POST",
           *             "path": "/orders",
           *             "query": "",
           *             "parsed_query": {},
           *             "headers": {
           *               "content-type": "application/json",
           *               "x-shop-signature": "sha256=4f2a"
           *             },
           *             "body": {
           *               "type": "order.created",
           *               "id": 1
           *             },
           *             "content_type": "application/json",
           *             "size_bytes": 31,
           *             "is_large_payload": false,
           *             "encoding": "json"
           *           }
           *         }
           *       ],
           *       "next_cursor": null
           *     }
           */
          "application/json": components["schemas"]["PublicBin"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  claimPublicBin: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
        /**
         * @description The bin's token
         * @example pbn_0123456789abcdef0123456789abcdef0123456789abcdef
         */
        "x-bin-token"?: string
      }
      path: {
        /**
         * @description The bin's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description ClaimedBin */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "claimed": true,
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       }
           *     }
           */
          "application/json": components["schemas"]["ClaimedBin"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listFixtures: {
    parameters: {
      query?: {
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only fixtures of these sources; repeat or separate by commas */
        source_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *           "team_id": "tm_demo",
           *           "name": "order without lines",
           *           "description": "answers 422",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "source_name": "shop",
           *           "original_request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "replay_count": 0,
           *           "last_replayed_at": null,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["Fixture"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createFixture: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
         *       "name": "order without lines",
         *       "description": "answers 422"
         *     }
         */
        "application/json": components["schemas"]["FixtureWrite"]
      }
    }
    responses: {
      /** @description Fixture */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *       "team_id": "tm_demo",
           *       "name": "order without lines",
           *       "description": "answers 422",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "source_name": "shop",
           *       "original_request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "replay_count": 0,
           *       "last_replayed_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "snapshot": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       }
           *     }
           */
          "application/json": components["schemas"]["Fixture"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getFixture: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The fixture's id
         * @example fix_01kak29d27s6m2w5v0t8r7q9xy
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Fixture */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *       "team_id": "tm_demo",
           *       "name": "order without lines",
           *       "description": "answers 422",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "source_name": "shop",
           *       "original_request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "replay_count": 0,
           *       "last_replayed_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "snapshot": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       }
           *     }
           */
          "application/json": components["schemas"]["Fixture"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteFixture: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The fixture's id
         * @example fix_01kak29d27s6m2w5v0t8r7q9xy
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateFixture: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The fixture's id
         * @example fix_01kak29d27s6m2w5v0t8r7q9xy
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "description": "answers 400"
         *     }
         */
        "application/json": components["schemas"]["FixturePatch"]
      }
    }
    responses: {
      /** @description Fixture */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *       "team_id": "tm_demo",
           *       "name": "order without lines",
           *       "description": "answers 422",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "source_name": "shop",
           *       "original_request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "replay_count": 0,
           *       "last_replayed_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "snapshot": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       }
           *     }
           */
          "application/json": components["schemas"]["Fixture"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  replayFixture: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The fixture's id
         * @example fix_01kak29d27s6m2w5v0t8r7q9xy
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk"
         *     }
         */
        "application/json": components["schemas"]["FixtureReplay"]
      }
    }
    responses: {
      /** @description replay_request_id is the new request. */
      202: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "queued": true,
           *       "fixture_id": "fix_01kak29d27s6m2w5v0t8r7q9xy",
           *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *       "message_id": "fxr_0123456789abcdef0123",
           *       "replay_request_id": "req_01kak27b05q4j0t3s8r6p5n7vw",
           *       "replayed_at": "2026-01-01T00:00:00.180Z"
           *     }
           */
          "application/json": components["schemas"]["FixtureReplayed"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listFixtureTargets: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The fixture's id
         * @example fix_01kak29d27s6m2w5v0t8r7q9xy
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "connection_name": "shop-to-orders-api",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "source_name": "shop",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "destination_name": "orders-api",
           *           "destination_type": "HTTP"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["FixtureTarget"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listRequests: {
    parameters: {
      query?: {
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only requests that went to these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description What to show of each row beyond its record; repeat or separate by commas */
        include?: ("data" | "event_summary")[]
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Rows in a page; more than 100 is taken as 100 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only requests that were rejected for these causes; repeat or separate by commas */
        rejection_cause?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only requests of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only those that were let in, or were not */
        status?: "accepted" | "rejected"
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Whether verification ran and passed */
        verified?: boolean
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 1,
           *       "total_exact": true,
           *       "limit": 100,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       },
           *       "next_cursor": null,
           *       "next": null,
           *       "prev": null,
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "team_id": "tm_demo",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "status": "accepted",
           *           "verified": true,
           *           "rejection_cause": null,
           *           "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "external_id": null,
           *           "events_count": 1,
           *           "ignored_count": 0,
           *           "cli_events_count": 0,
           *           "is_retry": false,
           *           "retry_kind": null,
           *           "retry_parent_request_id": null,
           *           "retry_operation_id": null,
           *           "retried_at": null,
           *           "ingested_at": "2026-01-01T00:00:00.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ],
           *       "partial": false,
           *       "unavailable_shard_count": 0
           *     }
           */
          "application/json": {
            applied_range: {
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              from: string
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              to: string
            }
            count: number
            limit: number
            models: components["schemas"]["Request"][]
            next: string | null
            next_cursor: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            partial: boolean
            prev: string | null
            total: number
            total_exact: boolean
            unavailable_shard_count: number
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getRequest: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Request */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "status": "accepted",
           *       "verified": true,
           *       "rejection_cause": null,
           *       "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *       "external_id": null,
           *       "events_count": 1,
           *       "ignored_count": 0,
           *       "cli_events_count": 0,
           *       "is_retry": false,
           *       "retry_kind": null,
           *       "retry_parent_request_id": null,
           *       "retry_operation_id": null,
           *       "retried_at": null,
           *       "ingested_at": "2026-01-01T00:00:00.000Z",
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "data": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       },
           *       "proxy_exchange": null
           *     }
           */
          "application/json": components["schemas"]["Request"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  downloadRequestBody: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description The bytes as received */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/octet-stream": string
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listRequestEvents: {
    parameters: {
      query?: {
        /** @description Connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description next of the page before */
        cursor?: string
        /** @description Only events to these destinations; repeat or separate by commas */
        destination_id?: string[]
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Only events of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Only events of these states; repeat or separate by commas */
        status?: ("SCHEDULED" | "QUEUED" | "HOLD" | "SUCCESSFUL" | "FAILED" | "CANCELLED")[]
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "asc",
           *         "limit": 100
           *       },
           *       "next": null,
           *       "prev": null,
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "team_id": "tm_demo",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "cli_id": null,
           *           "event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "status": "SUCCESSFUL",
           *           "rejection_cause": null,
           *           "failure_message": null,
           *           "ignored_reason": null,
           *           "attempts": 1,
           *           "response_status": 200,
           *           "error_code": null,
           *           "last_attempt_at": "2026-01-01T00:00:00.180Z",
           *           "next_attempt_at": null,
           *           "successful_at": "2026-01-01T00:00:00.180Z",
           *           "is_retry": false,
           *           "retry_kind": null,
           *           "retry_parent_event_id": null,
           *           "retry_operation_id": null,
           *           "retried_at": null,
           *           "resolved_at": null,
           *           "resolved_by_event_id": null,
           *           "ingested_at": "2026-01-01T00:00:00.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "stored_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.180Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["Event"][]
            next: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            prev: string | null
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listIgnoredEvents: {
    parameters: {
      query?: {
        /** @description Connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description next of the page before */
        cursor?: string
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "asc",
           *         "limit": 100
           *       },
           *       "next": null,
           *       "prev": null,
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "ign_01kak203r6j9d5n8m3k1h0g2pq",
           *           "team_id": "tm_demo",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "cause": "FILTERED",
           *           "meta": [
           *             "body"
           *           ],
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["IgnoredEvent"][]
            next: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            prev: string | null
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  retryRequest: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: {
      content: {
        /**
         * @example {
         *       "headers": {
         *         "x-replayed-by": "support"
         *       },
         *       "body": {
         *         "type": "order.created",
         *         "id": 2
         *       }
         *     }
         */
        "application/json": components["schemas"]["ReplayRequest"]
      }
    }
    responses: {
      /** @description replay_request_id is the new request, request_id the one it repeats. */
      202: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "ok": true,
           *       "queued": true,
           *       "transport": "queue",
           *       "replayed_at": "2026-01-01T00:00:00.180Z",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "replay_request_id": "req_01kak27b05q4j0t3s8r6p5n7vw",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "replay_message_id": "rpl_01kak27b05q4j0t3s8r6p5n7vw",
           *       "replay_mode": "modified",
           *       "original_rejection_cause": null
           *     }
           */
          "application/json": components["schemas"]["ReplayAccepted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  shareRequest: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: {
      content: {
        /**
         * @example {
         *       "title": "Bug 12",
         *       "expires_in_seconds": 3600,
         *       "redact_keys": [
         *         "customer_email"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["ShareWrite"]
      }
    }
    responses: {
      /** @description Share */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "shr_0123456789abcdef01234567",
           *       "token": "rsh_0123456789abcdef0123456789abcdef0123456789abcdef",
           *       "team_id": "tm_demo",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "title": "Bug 12",
           *       "url": "http://localhost:3000/v1/shares/request/rsh_0123456789abcdef0123456789abcdef0123456789abcdef",
           *       "share_url": "http://localhost:3000/v1/shares/request/rsh_0123456789abcdef0123456789abcdef0123456789abcdef",
           *       "expires_at": "2026-01-01T01:00:00.000Z",
           *       "revoked_at": null,
           *       "access_count": 0,
           *       "last_accessed_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "sanitized": true,
           *       "request": {
           *         "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "status": "accepted",
           *         "verified": true,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "method": "POST",
           *         "path": "/orders",
           *         "url": "/orders?token=[redacted]",
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "[redacted]"
           *         },
           *         "query": {
           *           "token": "[redacted]"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "body_truncated": false
           *       }
           *     }
           */
          "application/json": components["schemas"]["Share"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  revokeShares: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "revoked": 2
           *     }
           */
          "application/json": {
            request_id: string
            revoked: number
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  revokeShare: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
        /**
         * @description The share's id
         * @example shr_0123456789abcdef01234567
         */
        share: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "shr_0123456789abcdef01234567",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getTrace: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The request's id
         * @example req_01kak203r6g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Trace */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "request": {
           *         "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "team_id": "tm_demo",
           *         "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "status": "accepted",
           *         "verified": true,
           *         "rejection_cause": null,
           *         "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *         "external_id": null,
           *         "events_count": 1,
           *         "ignored_count": 0,
           *         "cli_events_count": 0,
           *         "is_retry": false,
           *         "retry_kind": null,
           *         "retry_parent_request_id": null,
           *         "retry_operation_id": null,
           *         "retried_at": null,
           *         "ingested_at": "2026-01-01T00:00:00.000Z",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "proxy_exchange": null,
           *       "events": [
           *         {
           *           "id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "team_id": "tm_demo",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "cli_id": null,
           *           "event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "status": "SUCCESSFUL",
           *           "rejection_cause": null,
           *           "failure_message": null,
           *           "ignored_reason": null,
           *           "attempts": 1,
           *           "response_status": 200,
           *           "error_code": null,
           *           "last_attempt_at": "2026-01-01T00:00:00.180Z",
           *           "next_attempt_at": null,
           *           "successful_at": "2026-01-01T00:00:00.180Z",
           *           "is_retry": false,
           *           "retry_kind": null,
           *           "retry_parent_event_id": null,
           *           "retry_operation_id": null,
           *           "retried_at": null,
           *           "resolved_at": null,
           *           "resolved_by_event_id": null,
           *           "ingested_at": "2026-01-01T00:00:00.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "stored_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.180Z"
           *         }
           *       ],
           *       "ignored_events": [],
           *       "attempts": [
           *         {
           *           "id": "att_01kak204s0k0e6p9n4m2j1h3qr",
           *           "team_id": "tm_demo",
           *           "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "attempt_number": 1,
           *           "trigger": "INITIAL",
           *           "status": "SUCCESSFUL",
           *           "response_status": 200,
           *           "error_code": null,
           *           "body": "ok",
           *           "body_encoding": "text",
           *           "response_headers": {
           *             "content-type": "text/plain"
           *           },
           *           "requested_url": "https://api.example.com/hooks/orders",
           *           "http_method": "POST",
           *           "bulk_retry_id": null,
           *           "successful_at": "2026-01-01T00:00:00.180Z",
           *           "delivered_at": "2026-01-01T00:00:00.000Z",
           *           "responded_at": "2026-01-01T00:00:00.180Z",
           *           "delivery_latency": 12,
           *           "response_latency": 168,
           *           "created_at": "2026-01-01T00:00:00.180Z",
           *           "updated_at": "2026-01-01T00:00:00.180Z"
           *         }
           *       ],
           *       "attempts_by_event_id": {
           *         "evt_01kak203r6h8c4m7k2j0g9f1np": [
           *           {
           *             "id": "att_01kak204s0k0e6p9n4m2j1h3qr",
           *             "team_id": "tm_demo",
           *             "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *             "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *             "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *             "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *             "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *             "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "attempt_number": 1,
           *             "trigger": "INITIAL",
           *             "status": "SUCCESSFUL",
           *             "response_status": 200,
           *             "error_code": null,
           *             "body": "ok",
           *             "body_encoding": "text",
           *             "response_headers": {
           *               "content-type": "text/plain"
           *             },
           *             "requested_url": "https://api.example.com/hooks/orders",
           *             "http_method": "POST",
           *             "bulk_retry_id": null,
           *             "successful_at": "2026-01-01T00:00:00.180Z",
           *             "delivered_at": "2026-01-01T00:00:00.000Z",
           *             "responded_at": "2026-01-01T00:00:00.180Z",
           *             "delivery_latency": 12,
           *             "response_latency": 168,
           *             "created_at": "2026-01-01T00:00:00.180Z",
           *             "updated_at": "2026-01-01T00:00:00.180Z"
           *           }
           *         ]
           *       },
           *       "skipped_connections": [],
           *       "no_event_reason": null,
           *       "workflow_runs": [],
           *       "transformations": [],
           *       "transformations_by_event_id": {},
           *       "timeline": [
           *         {
           *           "id": "tl_1",
           *           "kind": "request",
           *           "label": "Request accepted",
           *           "at": "2026-01-01T00:00:00.000Z",
           *           "status": "accepted",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn"
           *         },
           *         {
           *           "id": "tl_2",
           *           "kind": "event",
           *           "label": "Event created",
           *           "at": "2026-01-01T00:00:00.000Z",
           *           "status": "SUCCESSFUL",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "destination_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
           *         }
           *       ],
           *       "truncated": false,
           *       "counts": {
           *         "events": 1,
           *         "ignored_events": 0,
           *         "attempts": 1,
           *         "skipped_connections": 0,
           *         "workflow_runs": 0,
           *         "transformations": 0,
           *         "proxy_exchanges": 0
           *       }
           *     }
           */
          "application/json": components["schemas"]["Trace"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listRequestBulkOperations: {
    parameters: {
      query?: {
        /** @description Only those that are not at their end (ongoing), or that are (history) */
        bucket?: "all" | "ongoing" | "history"
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of bucket */
        view?: "all" | "ongoing" | "history"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *           "team_id": "tm_demo",
           *           "type": "request_bulk_retry",
           *           "status": "RUNNING",
           *           "filter": {
           *             "from": "2025-12-31T23:00:00.000Z",
           *             "to": "2026-01-01T00:00:00.000Z",
           *             "status": [
           *               "rejected"
           *             ]
           *           },
           *           "rate": null,
           *           "confirmed": true,
           *           "requested_by": null,
           *           "total_count": 120,
           *           "queued_count": 50,
           *           "done_count": 50,
           *           "failed_count": 2,
           *           "sample": [
           *             "evt_01kak203r6h8c4m7k2j0g9f1np"
           *           ],
           *           "error": null,
           *           "cancelable": true,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "planned_at": "2026-01-01T00:00:00.000Z",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": null
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["BulkOperation"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createRequestBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "from": "now-1h",
         *       "to": "now",
         *       "status": "rejected",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh"
         *     }
         */
        "application/json": components["schemas"]["RequestBulkRetry"]
      }
    }
    responses: {
      /** @description BulkOperation */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "request_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "rejected"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getRequestBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "request_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "rejected"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  cancelRequestBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "request_bulk_retry",
           *       "status": "CANCELLED",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "rejected"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": false,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  runRequestBulkOperation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The bulkOperation's id
         * @example bch_01kak28c16r5k1v4t9s7q6p8wx
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description BulkOperation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "bch_01kak28c16r5k1v4t9s7q6p8wx",
           *       "team_id": "tm_demo",
           *       "type": "request_bulk_retry",
           *       "status": "RUNNING",
           *       "filter": {
           *         "from": "2025-12-31T23:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z",
           *         "status": [
           *           "rejected"
           *         ]
           *       },
           *       "rate": null,
           *       "confirmed": true,
           *       "requested_by": null,
           *       "total_count": 120,
           *       "queued_count": 50,
           *       "done_count": 50,
           *       "failed_count": 2,
           *       "sample": [
           *         "evt_01kak203r6h8c4m7k2j0g9f1np"
           *       ],
           *       "error": null,
           *       "cancelable": true,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "planned_at": "2026-01-01T00:00:00.000Z",
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": null
           *     }
           */
          "application/json": components["schemas"]["BulkOperation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  countRequests: {
    parameters: {
      query?: {
        /** @description The bulk operation that made them */
        batch_operation_id?: string
        /** @description Alias of batch_operation_id */
        bulk_operation_id?: string
        /** @description Only requests that went to these connections; repeat or separate by commas */
        connection_id?: string[]
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Whether it is a retry, or a replay */
        is_retry?: boolean
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Only requests that were rejected for these causes; repeat or separate by commas */
        rejection_cause?: string[]
        /** @description Only retries of one, or of a bulk operation */
        retry_kind?: "single" | "bulk"
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Only requests of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Only those that were let in, or were not */
        status?: "accepted" | "rejected"
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
        /** @description Whether verification ran and passed */
        verified?: boolean
        /** @description Alias of connection_id; repeat or separate by commas */
        webhook_id?: string[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description RequestCount */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 42,
           *       "count": 42,
           *       "total_exact": true,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       },
           *       "partial": false,
           *       "unavailable_shard_count": 0
           *     }
           */
          "application/json": components["schemas"]["RequestCount"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listShares: {
    parameters: {
      query?: {
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Only shares of these requests; repeat or separate by commas */
        request_id?: string[]
        /** @description Only those that are so now; repeat or separate by commas */
        status?: ("active" | "expired" | "revoked")[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "next_cursor": null,
           *       "models": [
           *         {
           *           "id": "shr_0123456789abcdef01234567",
           *           "team_id": "tm_demo",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "title": "Bug 12",
           *           "status": "active",
           *           "expires_at": "2026-01-01T01:00:00.000Z",
           *           "revoked_at": null,
           *           "access_count": 2,
           *           "last_accessed_at": "2026-01-01T00:00:00.000Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            models: components["schemas"]["ListedShare"][]
            next_cursor: string | null
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  openShare: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The link's token
         * @example rsh_0123456789abcdef0123456789abcdef0123456789abcdef
         */
        token: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description PublicShare */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "title": "Bug 12",
           *       "expires_at": "2026-01-01T01:00:00.000Z",
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "sanitized": true,
           *       "request": {
           *         "id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "status": "accepted",
           *         "verified": true,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "method": "POST",
           *         "path": "/orders",
           *         "url": "/orders?token=[redacted]",
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "[redacted]"
           *         },
           *         "query": {
           *           "token": "[redacted]"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "body_truncated": false
           *       }
           *     }
           */
          "application/json": components["schemas"]["PublicShare"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listSources: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description false leaves out what is disabled */
        include_disabled?: boolean
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
        /** @description Only this type */
        type?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "team_id": "tm_demo",
           *           "name": "shop",
           *           "description": "Orders of the shop",
           *           "type": "WEBHOOK",
           *           "input_type": "webhook",
           *           "status": "enabled",
           *           "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "config": {
           *             "auth_type": "HMAC",
           *             "auth": {
           *               "webhook_secret_key": "****shop",
           *               "header_key": "x-shop-signature",
           *               "algorithm": "sha256",
           *               "encoding": "hex",
           *               "prefix": "sha256="
           *             },
           *             "allowed_http_methods": [
           *               "POST",
           *               "PUT",
           *               "PATCH",
           *               "DELETE"
           *             ],
           *             "custom_response": null,
           *             "mode": "webhook",
           *             "proxy": null,
           *             "chat_defer_ephemeral": false,
           *             "rate_limit": null,
           *             "rate_limit_period": null
           *           },
           *           "disabled_at": null,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Source"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertSource: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "shop",
         *       "description": "Orders of the shop",
         *       "type": "WEBHOOK",
         *       "config": {
         *         "auth_type": "HMAC",
         *         "auth": {
         *           "webhook_secret_key": "shared-with-the-shop",
         *           "header_key": "x-shop-signature",
         *           "prefix": "sha256="
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["SourceWrite"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "enabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenSource"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createSource: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "shop",
         *       "description": "Orders of the shop",
         *       "type": "WEBHOOK",
         *       "config": {
         *         "auth_type": "HMAC",
         *         "auth": {
         *           "webhook_secret_key": "shared-with-the-shop",
         *           "header_key": "x-shop-signature",
         *           "prefix": "sha256="
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["SourceWrite"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "enabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenSource"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getSource: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A source; secrets are masked, and status repeats disabled_at. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "enabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Source"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteSource: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateSource: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "description": "Orders of the new shop"
         *     }
         */
        "application/json": components["schemas"]["SourcePatch"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the new shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "enabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenSource"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  disableSource: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A source; secrets are masked, and status repeats disabled_at. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "disabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": "2026-01-01T00:00:00.000Z",
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Source"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  enableSource: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description A source; secrets are masked, and status repeats disabled_at. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "team_id": "tm_demo",
           *       "name": "shop",
           *       "description": "Orders of the shop",
           *       "type": "WEBHOOK",
           *       "input_type": "webhook",
           *       "status": "enabled",
           *       "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "config": {
           *         "auth_type": "HMAC",
           *         "auth": {
           *           "webhook_secret_key": "****shop",
           *           "header_key": "x-shop-signature",
           *           "algorithm": "sha256",
           *           "encoding": "hex",
           *           "prefix": "sha256="
           *         },
           *         "allowed_http_methods": [
           *           "POST",
           *           "PUT",
           *           "PATCH",
           *           "DELETE"
           *         ],
           *         "custom_response": null,
           *         "mode": "webhook",
           *         "proxy": null,
           *         "chat_defer_ephemeral": false,
           *         "rate_limit": null,
           *         "rate_limit_period": null
           *       },
           *       "disabled_at": null,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Source"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getSourceHealth: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The source's id
         * @example src_01kak1v8m0c3x9f2e7d5b4a6gh
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description What became of a source's requests in the last 24 hours, and where its ingest limit stands. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "accepted_24h_count": 1200,
           *       "rejected_24h_count": 3,
           *       "limited_24h_count": 40,
           *       "last_request_at": "2026-01-01T00:00:00.000Z",
           *       "rate_limit": 100,
           *       "rate_limit_period": "minute",
           *       "period": {
           *         "leased": 100,
           *         "remaining": 0,
           *         "doors": 1,
           *         "ends_at": "2026-01-01T00:00:20.000Z"
           *       }
           *     }
           */
          "application/json": components["schemas"]["SourceHealth"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getTeam: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Team */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "tm_demo",
           *       "name": "Payments",
           *       "members": 1,
           *       "retention": {
           *         "payload_days": 30,
           *         "record_days": 90,
           *         "most_payload_days": 30,
           *         "most_record_days": 90
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Team"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateTeam: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "retention": {
         *         "payload_days": 7
         *       }
         *     }
         */
        "application/json": components["schemas"]["TeamPatch"]
      }
    }
    responses: {
      /** @description Team */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "tm_demo",
           *       "name": "Payments",
           *       "members": 1,
           *       "retention": {
           *         "payload_days": 7,
           *         "record_days": 90,
           *         "most_payload_days": 30,
           *         "most_record_days": 90
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Team"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listTeamMembers: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *           "email": "ada@example.com",
           *           "name": "Ada",
           *           "role": "owner",
           *           "expected": false,
           *           "created_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["TeamMember"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  addTeamMember: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "email": "grace@example.com",
         *       "role": "member"
         *     }
         */
        "application/json": components["schemas"]["TeamMemberWrite"]
      }
    }
    responses: {
      /** @description TeamMember */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *       "email": "grace@example.com",
           *       "name": null,
           *       "role": "member",
           *       "expected": true,
           *       "created_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["TeamMember"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  removeTeamMember: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The member's id
         * @example usr_01jgfjjz00abcdefghjkmnpqrs
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateTeamMember: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The member's id
         * @example usr_01jgfjjz00abcdefghjkmnpqrs
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "role": "owner"
         *     }
         */
        "application/json": components["schemas"]["TeamMemberPatch"]
      }
    }
    responses: {
      /** @description TeamMember */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "usr_01jgfjjz00abcdefghjkmnpqrs",
           *       "email": "ada@example.com",
           *       "name": "Ada",
           *       "role": "owner",
           *       "expected": false,
           *       "created_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["TeamMember"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listTeams: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "data": [
           *         {
           *           "id": "tm_demo",
           *           "name": "Payments",
           *           "role": "owner"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            data: components["schemas"]["OwnTeam"][]
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createTeam: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Payments"
         *     }
         */
        "application/json": components["schemas"]["TeamWrite"]
      }
    }
    responses: {
      /** @description Team */
      201: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "tm_demo",
           *       "name": "Payments",
           *       "members": 1,
           *       "retention": {
           *         "payload_days": 30,
           *         "record_days": 90,
           *         "most_payload_days": 30,
           *         "most_record_days": 90
           *       },
           *       "created_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Team"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listTransformations: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Counts executions and connections; without it they are shown as zeros */
        include_counts?: boolean
        /** @description Alias of include_counts */
        include_metrics?: boolean
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *           "team_id": "tm_demo",
           *           "name": "add-tenant",
           *           "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
           *           "env": {
           *             "TENANT": "acme"
           *           },
           *           "runtime": "js-v1",
           *           "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *           "isolation": null,
           *           "isolation_reason": null,
           *           "deleted_at": null,
           *           "executions_24h_count": 12,
           *           "executions_24h_successful_count": 12,
           *           "executions_24h_failed_count": 0,
           *           "executions_24h_successful_bins": [
           *             0,
           *             0,
           *             0,
           *             2,
           *             4,
           *             6
           *           ],
           *           "executions_24h_failed_bins": [
           *             0,
           *             0,
           *             0,
           *             0,
           *             0,
           *             0
           *           ],
           *           "connections_count": 1,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Transformation"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertTransformation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "add-tenant",
         *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
         *       "env": {
         *         "TENANT": "acme"
         *       }
         *     }
         */
        "application/json": components["schemas"]["TransformationWrite"]
      }
    }
    responses: {
      /** @description Transformation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "team_id": "tm_demo",
           *       "name": "add-tenant",
           *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
           *       "env": {
           *         "TENANT": "acme"
           *       },
           *       "runtime": "js-v1",
           *       "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *       "isolation": null,
           *       "isolation_reason": null,
           *       "deleted_at": null,
           *       "executions_24h_count": 12,
           *       "executions_24h_successful_count": 12,
           *       "executions_24h_failed_count": 0,
           *       "executions_24h_successful_bins": [
           *         0,
           *         0,
           *         0,
           *         2,
           *         4,
           *         6
           *       ],
           *       "executions_24h_failed_bins": [
           *         0,
           *         0,
           *         0,
           *         0,
           *         0,
           *         0
           *       ],
           *       "connections_count": 1,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Transformation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createTransformation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "add-tenant",
         *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
         *       "env": {
         *         "TENANT": "acme"
         *       }
         *     }
         */
        "application/json": components["schemas"]["TransformationWrite"]
      }
    }
    responses: {
      /** @description Transformation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "team_id": "tm_demo",
           *       "name": "add-tenant",
           *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
           *       "env": {
           *         "TENANT": "acme"
           *       },
           *       "runtime": "js-v1",
           *       "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *       "isolation": null,
           *       "isolation_reason": null,
           *       "deleted_at": null,
           *       "executions_24h_count": 12,
           *       "executions_24h_successful_count": 12,
           *       "executions_24h_failed_count": 0,
           *       "executions_24h_successful_bins": [
           *         0,
           *         0,
           *         0,
           *         2,
           *         4,
           *         6
           *       ],
           *       "executions_24h_failed_bins": [
           *         0,
           *         0,
           *         0,
           *         0,
           *         0,
           *         0
           *       ],
           *       "connections_count": 1,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Transformation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getTransformation: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The transformation's id
         * @example trs_01kak1y3q2f6a2j5h0g8e7d9km
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Transformation */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "team_id": "tm_demo",
           *       "name": "add-tenant",
           *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
           *       "env": {
           *         "TENANT": "acme"
           *       },
           *       "runtime": "js-v1",
           *       "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *       "isolation": null,
           *       "isolation_reason": null,
           *       "deleted_at": null,
           *       "executions_24h_count": 12,
           *       "executions_24h_successful_count": 12,
           *       "executions_24h_failed_count": 0,
           *       "executions_24h_successful_bins": [
           *         0,
           *         0,
           *         0,
           *         2,
           *         4,
           *         6
           *       ],
           *       "executions_24h_failed_bins": [
           *         0,
           *         0,
           *         0,
           *         0,
           *         0,
           *         0
           *       ],
           *       "connections_count": 1,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Transformation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteTransformation: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The transformation's id
         * @example trs_01kak1y3q2f6a2j5h0g8e7d9km
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Deleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "deleted": true
           *     }
           */
          "application/json": components["schemas"]["Deleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateTransformation: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The transformation's id
         * @example trs_01kak1y3q2f6a2j5h0g8e7d9km
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "env": {
         *         "TENANT": "acme-2"
         *       }
         *     }
         */
        "application/json": components["schemas"]["TransformationPatch"]
      }
    }
    responses: {
      /** @description Transformation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "team_id": "tm_demo",
           *       "name": "add-tenant",
           *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
           *       "env": {
           *         "TENANT": "acme-2"
           *       },
           *       "runtime": "js-v1",
           *       "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *       "isolation": null,
           *       "isolation_reason": null,
           *       "deleted_at": null,
           *       "executions_24h_count": 12,
           *       "executions_24h_successful_count": 12,
           *       "executions_24h_failed_count": 0,
           *       "executions_24h_successful_bins": [
           *         0,
           *         0,
           *         0,
           *         2,
           *         4,
           *         6
           *       ],
           *       "executions_24h_failed_bins": [
           *         0,
           *         0,
           *         0,
           *         0,
           *         0,
           *         0
           *       ],
           *       "connections_count": 1,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Transformation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listExecutions: {
    parameters: {
      query?: {
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Rows in a page; more than 255 is taken as 255 */
        limit?: number
        /** @description Only those whose highest line is of these; repeat or separate by commas */
        log_level?: ("debug" | "info" | "warn" | "error" | "fatal")[]
        /** @description Alias of cursor */
        next?: string
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The transformation's id
         * @example trs_01kak1y3q2f6a2j5h0g8e7d9km
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 1,
           *       "total_exact": true,
           *       "limit": 100,
           *       "applied_range": {
           *         "from": "2025-12-31T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.000Z"
           *       },
           *       "next_cursor": null,
           *       "next": null,
           *       "prev": null,
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "models": [
           *         {
           *           "id": "txe_01kak203r6m1f7q0p5n3k2j4rs",
           *           "team_id": "tm_demo",
           *           "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *           "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "transformation_id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *           "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "transformed_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *           "runtime": "js-v1",
           *           "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *           "error_code": null,
           *           "error_message": null,
           *           "stats": {
           *             "duration_ms": 0.4,
           *             "memory_bytes": 123456
           *           },
           *           "log_level": "info",
           *           "logs": [
           *             {
           *               "type": "log",
           *               "message": "hello"
           *             }
           *           ],
           *           "logs_truncated": false,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            applied_range: {
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              from: string
              /**
               * Format: date-time
               * @description ISO 8601, UTC, milliseconds
               * @example 2026-01-01T00:00:00.000Z
               */
              to: string
            }
            count: number
            /** @description Of a feed: whether there are more to be read now */
            has_more?: boolean
            limit: number
            models: components["schemas"]["Execution"][]
            next: string | null
            next_cursor: string | null
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
            prev: string | null
            total: number
            total_exact: boolean
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getExecution: {
    parameters: {
      query?: {
        /** @description The request that it ran for; not needed */
        request_id?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The execution's id
         * @example txe_01kak203r6m1f7q0p5n3k2j4rs
         */
        executionId: string
        /**
         * @description The transformation's id
         * @example trs_01kak1y3q2f6a2j5h0g8e7d9km
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description ExecutionDetail */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "txe_01kak203r6m1f7q0p5n3k2j4rs",
           *       "team_id": "tm_demo",
           *       "event_id": "evt_01kak203r6h8c4m7k2j0g9f1np",
           *       "webhook_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "connection_id": "web_01kak1x7p8e5z1h4g9f7d6c8jk",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "transformation_id": "trs_01kak1y3q2f6a2j5h0g8e7d9km",
           *       "original_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *       "transformed_event_data_id": "edt_01kak203r6g7b3k6j1h9f8e0mn",
           *       "runtime": "js-v1",
           *       "code_hash": "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
           *       "error_code": null,
           *       "error_message": null,
           *       "stats": {
           *         "duration_ms": 0.4,
           *         "memory_bytes": 123456
           *       },
           *       "log_level": "info",
           *       "logs": [
           *         {
           *           "type": "log",
           *           "message": "hello"
           *         }
           *       ],
           *       "logs_truncated": false,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "original_event_data": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       },
           *       "transformed_event_data": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": "",
           *         "parsed_query": {},
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         },
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "is_large_payload": false,
           *         "encoding": "json"
           *       }
           *     }
           */
          "application/json": components["schemas"]["ExecutionDetail"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getTransformationCapabilities: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description TransformationCapabilities */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "runtime": "js-v1",
           *       "runtimes": [
           *         "js-v1"
           *       ],
           *       "handlers": [
           *         "transform"
           *       ],
           *       "isolations": [
           *         "sealed",
           *         "fresh"
           *       ],
           *       "globals": [
           *         "addHandler",
           *         "console",
           *         "process.env",
           *         "URL",
           *         "URLSearchParams",
           *         "TextEncoder",
           *         "TextDecoder",
           *         "atob",
           *         "btoa",
           *         "crypto.hash",
           *         "crypto.hmac",
           *         "crypto.timingSafeEqual",
           *         "crypto.randomUUID"
           *       ],
           *       "limits": {
           *         "time_ms": 1000,
           *         "memory_bytes": 67108864,
           *         "code_bytes": 1048576,
           *         "variables": 100,
           *         "variables_bytes": 65536,
           *         "output_bytes": 10485760,
           *         "body_values": 100000,
           *         "body_depth": 512,
           *         "headers": 500,
           *         "headers_bytes": 65536,
           *         "header_name_bytes": 256,
           *         "header_value_bytes": 32768,
           *         "path_bytes": 2048,
           *         "query_bytes": 16384,
           *         "query_values": 1000,
           *         "log_lines": 100,
           *         "log_line_bytes": 4096
           *       }
           *     }
           */
          "application/json": components["schemas"]["TransformationCapabilities"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  runTransformation: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))",
         *       "env": {
         *         "TENANT": "acme"
         *       },
         *       "request": {
         *         "method": "POST",
         *         "path": "/orders",
         *         "query": {
         *           "page": "1"
         *         },
         *         "headers": {
         *           "content-type": "application/json",
         *           "x-shop-signature": "sha256=4f2a"
         *         },
         *         "body": {
         *           "type": "order.created",
         *           "id": 1
         *         }
         *       },
         *       "context": {
         *         "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn"
         *       }
         *     }
         */
        "application/json": components["schemas"]["TransformationRunInput"]
      }
    }
    responses: {
      /** @description TransformationRun */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "transformation_id": null,
           *       "runtime": "js-v1",
           *       "stats": {
           *         "duration_ms": 0.4,
           *         "memory_bytes": 123456
           *       },
           *       "log_level": "info",
           *       "console": [],
           *       "warnings": [],
           *       "request": {
           *         "method": "POST",
           *         "path": "/orders",
           *         "query": {
           *           "page": "1"
           *         },
           *         "parsed_query": {
           *           "page": "1"
           *         },
           *         "headers": {
           *           "content-type": "application/json",
           *           "x-shop-signature": "sha256=4f2a",
           *           "tenant": "acme"
           *         },
           *         "body": {
           *           "type": "order.created",
           *           "id": 1
           *         }
           *       },
           *       "error": null,
           *       "transformation_run_time": {
           *         "started_at": "2026-01-01T00:00:00.000Z",
           *         "finished_at": "2026-01-01T00:00:00.000Z",
           *         "duration_ms": 0.4
           *       }
           *     }
           */
          "application/json": components["schemas"]["TransformationRun"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  validateTransformation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "code": "addHandler(\"transform\", (request, context) => ({\n  ...request,\n  headers: { ...request.headers, tenant: process.env.TENANT }\n}))"
         *     }
         */
        "application/json": components["schemas"]["TransformationValidationInput"]
      }
    }
    responses: {
      /** @description TransformationValidation */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "valid": false,
           *       "runtime": "js-v1",
           *       "handlers": [],
           *       "console": [],
           *       "error": {
           *         "code": "NO_HANDLER",
           *         "name": "Error",
           *         "message": "the code does not call addHandler(\"transform\", …)",
           *         "line": null
           *       }
           *     }
           */
          "application/json": components["schemas"]["TransformationValidation"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listWorkflowActivity: {
    parameters: {
      query?: {
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; a day before its end unless told: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Rows in a page; less than 1 is taken as 1, more than 100 is taken as 100 */
        limit?: number
        /** @description Looks for this in request ids and in the names of workflows and sources, in either case */
        q?: string
        /** @description Alias of q */
        search?: string
        /** @description Alias of source_id; repeat or separate by commas */
        source?: string[]
        /** @description Only runs of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Of these states; repeat or separate by commas */
        status?: ("queued" | "running" | "succeeded" | "failed")[]
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowActivityList */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "total": 1,
           *       "total_exact": true,
           *       "count": 1,
           *       "applied_range": {
           *         "from": "2026-01-01T00:00:00.000Z",
           *         "to": "2026-01-01T00:00:00.900Z"
           *       },
           *       "models": [
           *         {
           *           "id": "wfr_01kak203r6v1f7q0p5n3k2j4rs",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *           "workflow_name": "Paid order to CRM",
           *           "workflow_version": 1,
           *           "source": {
           *             "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *             "name": "shop",
           *             "provider_key": null,
           *             "trigger_name": "Webhook"
           *           },
           *           "status": "failed",
           *           "outcome": "failed",
           *           "attempt_count": 1,
           *           "steps_count": 2,
           *           "succeeded_steps": 1,
           *           "failed_steps": 1,
           *           "skipped_steps": 0,
           *           "error_code": "BAD_RESPONSE",
           *           "error_message": "HTTP 500",
           *           "steps": [
           *             {
           *               "id": "wse_01kak203r6w2g8r1q6p4m3k5st",
           *               "step_id": "to_crm",
           *               "name": "CRM",
           *               "kind": "destination",
           *               "status": "failed",
           *               "execution_index": 1,
           *               "input": {
           *                 "source_type": "step",
           *                 "source_step_id": "only_paid",
           *                 "source_port": "matched"
           *               },
           *               "output_port": null,
           *               "response_status": 500,
           *               "error_code": "BAD_RESPONSE",
           *               "error_message": "HTTP 500",
           *               "started_at": "2026-01-01T00:00:00.000Z",
           *               "finished_at": "2026-01-01T00:00:00.900Z"
           *             }
           *           ],
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": "2026-01-01T00:00:00.900Z",
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.900Z"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowActivityList"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getFormatterCatalog: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description All operations, with all that a form of one needs. */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "engine_version": "1.0.0",
           *       "supported_versions": [
           *         "1.0.0"
           *       ],
           *       "catalog_hash": "sha256:5151515151515151515151515151515151515151515151515151515151515151",
           *       "data_versions": {
           *         "icu": "78.2",
           *         "cldr": "48.0",
           *         "tz": "2025c",
           *         "phone": "1.13.16"
           *       },
           *       "limits": {
           *         "body_bytes": 262144,
           *         "string_bytes": 131072,
           *         "line_items": 1000,
           *         "output_bytes": 524288,
           *         "cpu_ms": 250
           *       },
           *       "categories": [
           *         {
           *           "key": "text",
           *           "label": "Text",
           *           "operations": [
           *             {
           *               "key": "text.lowercase",
           *               "label": "Lowercase",
           *               "description": "All letters small, as the locale has it",
           *               "since": "1.0.0",
           *               "deterministic": true,
           *               "line_item_policy": {
           *                 "mode": "map",
           *                 "fields": [
           *                   "input"
           *                 ],
           *                 "max": 1000,
           *                 "by_options": false
           *               },
           *               "fields": [
           *                 {
           *                   "key": "input",
           *                   "label": "Text",
           *                   "type": "string",
           *                   "mappable": true,
           *                   "required": true,
           *                   "default": null,
           *                   "line_items": true,
           *                   "choices": null,
           *                   "help": null
           *                 }
           *               ],
           *               "dynamic_fields": [],
           *               "limits": {},
           *               "warnings": [
           *                 "INPUT_EMPTY"
           *               ],
           *               "errors": [
           *                 "FORMATTER_INPUT_REQUIRED"
           *               ],
           *               "output_schema": {
           *                 "type": "object",
           *                 "properties": {
           *                   "result": {
           *                     "type": "string"
           *                   }
           *                 },
           *                 "required": [
           *                   "result"
           *                 ]
           *               },
           *               "sample": {
           *                 "inputs": {
           *                   "input": "Ada"
           *                 },
           *                 "options": {},
           *                 "output": {
           *                   "result": "ada"
           *                 }
           *               }
           *             }
           *           ]
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["FormatterCatalog"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  testFormatter: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "config": {
         *         "operation": "text.replace",
         *         "engine_version": "1.0.0",
         *         "options": {}
         *       },
         *       "inputs": {
         *         "input": "{{trigger.body.name}}",
         *         "find": "-",
         *         "replace": " "
         *       },
         *       "context": {
         *         "trigger": {
         *           "body": {
         *             "name": "ada-lovelace"
         *           }
         *         },
         *         "steps": {}
         *       },
         *       "anchor_at": "2026-01-01T00:00:00.000Z",
         *       "timezone": "UTC",
         *       "seed": "test"
         *     }
         */
        "application/json": components["schemas"]["FormatterTrialInput"]
      }
    }
    responses: {
      /** @description What the operation made of the inputs. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "operation": "text.replace",
           *       "engine_version": "1.0.0",
           *       "resolved_input": {
           *         "input": "ada-lovelace",
           *         "find": "-",
           *         "replace": " "
           *       },
           *       "output": {
           *         "result": "ada lovelace"
           *       },
           *       "output_schema": {
           *         "type": "object",
           *         "properties": {
           *           "result": {
           *             "type": "string"
           *           }
           *         },
           *         "required": [
           *           "result"
           *         ]
           *       },
           *       "warnings": [],
           *       "line_items": {
           *         "applied": false,
           *         "count": 0
           *       },
           *       "anchor_at": "2026-01-01T00:00:00.000Z",
           *       "duration_ms": 0.2,
           *       "data_versions": {
           *         "icu": "78.2",
           *         "cldr": "48.0",
           *         "tz": "2025c",
           *         "phone": "1.13.16"
           *       }
           *     }
           */
          "application/json": components["schemas"]["FormatterTrial"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listWorkflowTemplates: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowTemplateList */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "models": [
           *         {
           *           "key": "failed-payment-alert",
           *           "version": 1,
           *           "name": "Alert on a failed payment",
           *           "description": "Sends a short text about each payment that has failed, with its amount as people read it.",
           *           "trigger": {
           *             "provider_key": null,
           *             "definition_key": null,
           *             "name": "Webhook"
           *           },
           *           "steps": [
           *             {
           *               "name": "Failed payments only",
           *               "kind": "filter",
           *               "provider_key": null,
           *               "action_key": null
           *             },
           *             {
           *               "name": "Amount",
           *               "kind": "action",
           *               "provider_key": "formatter",
           *               "action_key": "number.currency"
           *             },
           *             {
           *               "name": "Customer",
           *               "kind": "action",
           *               "provider_key": "formatter",
           *               "action_key": "text.titlecase"
           *             },
           *             {
           *               "name": "Alert",
           *               "kind": "destination",
           *               "provider_key": null,
           *               "action_key": null
           *             }
           *           ],
           *           "required_connections": [
           *             {
           *               "key": "alerts",
           *               "type": "destination",
           *               "description": "Where the text goes, as {\"text\": …}"
           *             }
           *           ],
           *           "sample": {
           *             "type": "payment.failed",
           *             "id": "pay_1",
           *             "amount": "1234.5",
           *             "currency": "EUR",
           *             "customer": {
           *               "name": "ada lovelace"
           *             }
           *           },
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowTemplateList"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getWorkflowTemplate: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The template's key
         * @example failed-payment-alert
         */
        key: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowTemplateDetail */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "key": "failed-payment-alert",
           *       "version": 1,
           *       "name": "Alert on a failed payment",
           *       "description": "Sends a short text about each payment that has failed, with its amount as people read it.",
           *       "trigger": {
           *         "provider_key": null,
           *         "definition_key": null,
           *         "name": "Webhook"
           *       },
           *       "steps": [
           *         {
           *           "name": "Failed payments only",
           *           "kind": "filter",
           *           "provider_key": null,
           *           "action_key": null
           *         },
           *         {
           *           "name": "Amount",
           *           "kind": "action",
           *           "provider_key": "formatter",
           *           "action_key": "number.currency"
           *         },
           *         {
           *           "name": "Customer",
           *           "kind": "action",
           *           "provider_key": "formatter",
           *           "action_key": "text.titlecase"
           *         },
           *         {
           *           "name": "Alert",
           *           "kind": "destination",
           *           "provider_key": null,
           *           "action_key": null
           *         }
           *       ],
           *       "required_connections": [
           *         {
           *           "key": "alerts",
           *           "type": "destination",
           *           "description": "Where the text goes, as {\"text\": …}"
           *         }
           *       ],
           *       "sample": {
           *         "type": "payment.failed",
           *         "id": "pay_1",
           *         "amount": "1234.5",
           *         "currency": "EUR",
           *         "customer": {
           *           "name": "ada lovelace"
           *         }
           *       },
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "definition": {
           *         "steps": [
           *           {
           *             "id": "only_failed",
           *             "kind": "filter",
           *             "name": "Failed payments only",
           *             "config": {
           *               "conditions": {
           *                 "body": {
           *                   "type": {
           *                     "$in": [
           *                       "payment.failed",
           *                       "charge.failed"
           *                     ]
           *                   }
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "amount",
           *             "kind": "action",
           *             "name": "Amount",
           *             "action": {
           *               "provider_key": "formatter",
           *               "action_key": "number.currency",
           *               "version": "1.0.0"
           *             },
           *             "invocation_inputs": {
           *               "input": "{{trigger.body.amount}}",
           *               "currency": "{{trigger.body.currency ?? \"USD\"}}"
           *             },
           *             "config": {
           *               "formatter": {
           *                 "options": {
           *                   "pattern": "¤#,##0.00"
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "customer",
           *             "kind": "action",
           *             "name": "Customer",
           *             "action": {
           *               "provider_key": "formatter",
           *               "action_key": "text.titlecase",
           *               "version": "1.0.0"
           *             },
           *             "invocation_inputs": {
           *               "input": "{{trigger.body.customer.name ?? \"unknown\"}}"
           *             },
           *             "config": {
           *               "formatter": {
           *                 "options": {}
           *               }
           *             }
           *           },
           *           {
           *             "id": "alert",
           *             "kind": "destination",
           *             "name": "Alert",
           *             "resource_id": "<alerts>",
           *             "invocation_inputs": {
           *               "body": {
           *                 "text": "Payment {{trigger.body.id}} of {{steps.amount.output.result}} by {{steps.customer.output.result}} has failed"
           *               }
           *             },
           *             "config": {
           *               "retry": {
           *                 "strategy": "exponential",
           *                 "interval": 2000,
           *                 "count": 3
           *               }
           *             }
           *           }
           *         ],
           *         "edges": [
           *           {
           *             "source_type": "trigger",
           *             "source_step_id": null,
           *             "target_step_id": "only_failed"
           *           },
           *           {
           *             "source_type": "step",
           *             "source_step_id": "only_failed",
           *             "target_step_id": "amount"
           *           },
           *           {
           *             "source_type": "step",
           *             "source_step_id": "amount",
           *             "target_step_id": "customer"
           *           },
           *           {
           *             "source_type": "step",
           *             "source_step_id": "customer",
           *             "target_step_id": "alert"
           *           }
           *         ]
           *       }
           *     }
           */
          "application/json": components["schemas"]["WorkflowTemplateDetail"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  instantiateWorkflowTemplate: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The template's key
         * @example failed-payment-alert
         */
        key: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Alert on a failed payment",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
         *       "bindings": {
         *         "alerts": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
         *       }
         *     }
         */
        "application/json": components["schemas"]["WorkflowTemplateUse"]
      }
    }
    responses: {
      /** @description InstantiatedWorkflow */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "name": "Paid order to CRM",
           *       "description": null,
           *       "status": "draft",
           *       "version": 1,
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "shop",
           *         "type": "WEBHOOK",
           *         "status": "enabled",
           *         "provider_key": null,
           *         "definition_key": null,
           *         "definition_name": null,
           *         "output_schema": null,
           *         "schema_provenance": "none",
           *         "primary_output": "body",
           *         "export_path": null,
           *         "sample": null
           *       },
           *       "capabilities": {
           *         "branching": true,
           *         "fan_out": true,
           *         "join": true,
           *         "sequential_action_loop": true,
           *         "runtime_executable": true,
           *         "runtime_issue": null
           *       },
           *       "steps": [
           *         {
           *           "id": "only_paid",
           *           "kind": "filter",
           *           "name": "Paid only",
           *           "config": {
           *             "conditions": {
           *               "trigger": {
           *                 "body": {
           *                   "status": "paid"
           *                 }
           *               }
           *             }
           *           }
           *         },
           *         {
           *           "id": "to_crm",
           *           "kind": "destination",
           *           "name": "CRM",
           *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "invocation_inputs": {
           *             "body": {
           *               "order": "{{trigger.body.id}}"
           *             }
           *           }
           *         }
           *       ],
           *       "edges": [
           *         {
           *           "id": "e_begin",
           *           "source_type": "trigger",
           *           "target_step_id": "only_paid"
           *         },
           *         {
           *           "id": "e_paid",
           *           "source_type": "step",
           *           "source_step_id": "only_paid",
           *           "target_step_id": "to_crm"
           *         }
           *       ],
           *       "steps_count": 2,
           *       "edges_count": 2,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "template": {
           *         "key": "failed-payment-alert",
           *         "version": 1
           *       }
           *     }
           */
          "application/json": components["schemas"]["InstantiatedWorkflow"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listWorkflows: {
    parameters: {
      query?: {
        /** @description The order of the list */
        dir?: "asc" | "desc"
        /** @description Only these; repeat or separate by commas */
        id?: string[]
        /** @description Alias of id; repeat or separate by commas */
        ids?: string[]
        /** @description Rows in a page; less than 1 is taken as 1, more than 255 is taken as 255 */
        limit?: number
        /** @description Exactly this name */
        name?: string
        /** @description What the list is ordered by */
        order_by?: "name" | "created_at" | "updated_at"
        /** @description Looks for this in ids and further fields */
        q?: string
        /** @description Alias of q */
        search?: string
        /** @description Alias of q */
        search_term?: string
        /** @description Of these sources; repeat or separate by commas */
        source_id?: string[]
        /** @description Of these states; repeat or separate by commas */
        status?: ("draft" | "active" | "paused" | "disabled")[]
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "pagination": {
           *         "order_by": "created_at",
           *         "dir": "desc",
           *         "limit": 100
           *       },
           *       "count": 1,
           *       "has_more": false,
           *       "models": [
           *         {
           *           "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *           "team_id": "tm_demo",
           *           "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "Paid order to CRM",
           *           "description": null,
           *           "status": "active",
           *           "version": 1,
           *           "source": {
           *             "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *             "name": "shop",
           *             "type": "WEBHOOK",
           *             "status": "enabled",
           *             "provider_key": null,
           *             "definition_key": null,
           *             "definition_name": null,
           *             "output_schema": null,
           *             "schema_provenance": "none",
           *             "primary_output": "body",
           *             "export_path": null,
           *             "sample": null
           *           },
           *           "capabilities": {
           *             "branching": true,
           *             "fan_out": true,
           *             "join": true,
           *             "sequential_action_loop": true,
           *             "runtime_executable": true,
           *             "runtime_issue": null
           *           },
           *           "steps": [
           *             {
           *               "id": "only_paid",
           *               "kind": "filter",
           *               "name": "Paid only",
           *               "config": {
           *                 "conditions": {
           *                   "trigger": {
           *                     "body": {
           *                       "status": "paid"
           *                     }
           *                   }
           *                 }
           *               }
           *             },
           *             {
           *               "id": "to_crm",
           *               "kind": "destination",
           *               "name": "CRM",
           *               "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *               "invocation_inputs": {
           *                 "body": {
           *                   "order": "{{trigger.body.id}}"
           *                 }
           *               }
           *             }
           *           ],
           *           "edges": [
           *             {
           *               "id": "e_begin",
           *               "source_type": "trigger",
           *               "target_step_id": "only_paid"
           *             },
           *             {
           *               "id": "e_paid",
           *               "source_type": "step",
           *               "source_step_id": "only_paid",
           *               "target_step_id": "to_crm"
           *             }
           *           ],
           *           "steps_count": 2,
           *           "edges_count": 2,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          "application/json": {
            count: number
            has_more: boolean
            models: components["schemas"]["Workflow"][]
            pagination: {
              /** @enum {string} */
              dir: "asc" | "desc"
              limit: number
              order_by: string
            }
          }
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  upsertWorkflow: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Paid order to CRM",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
         *       "steps": [
         *         {
         *           "id": "only_paid",
         *           "kind": "filter",
         *           "name": "Paid only",
         *           "config": {
         *             "conditions": {
         *               "trigger": {
         *                 "body": {
         *                   "status": "paid"
         *                 }
         *               }
         *             }
         *           }
         *         },
         *         {
         *           "id": "to_crm",
         *           "kind": "destination",
         *           "name": "CRM",
         *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *           "invocation_inputs": {
         *             "body": {
         *               "order": "{{trigger.body.id}}"
         *             }
         *           }
         *         }
         *       ],
         *       "edges": [
         *         {
         *           "id": "e_begin",
         *           "source_type": "trigger",
         *           "target_step_id": "only_paid"
         *         },
         *         {
         *           "id": "e_paid",
         *           "source_type": "step",
         *           "source_step_id": "only_paid",
         *           "target_step_id": "to_crm"
         *         }
         *       ]
         *     }
         */
        "application/json": components["schemas"]["WorkflowWrite"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "name": "Paid order to CRM",
           *       "description": null,
           *       "status": "active",
           *       "version": 1,
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "shop",
           *         "type": "WEBHOOK",
           *         "status": "enabled",
           *         "provider_key": null,
           *         "definition_key": null,
           *         "definition_name": null,
           *         "output_schema": null,
           *         "schema_provenance": "none",
           *         "primary_output": "body",
           *         "export_path": null,
           *         "sample": null
           *       },
           *       "capabilities": {
           *         "branching": true,
           *         "fan_out": true,
           *         "join": true,
           *         "sequential_action_loop": true,
           *         "runtime_executable": true,
           *         "runtime_issue": null
           *       },
           *       "steps": [
           *         {
           *           "id": "only_paid",
           *           "kind": "filter",
           *           "name": "Paid only",
           *           "config": {
           *             "conditions": {
           *               "trigger": {
           *                 "body": {
           *                   "status": "paid"
           *                 }
           *               }
           *             }
           *           }
           *         },
           *         {
           *           "id": "to_crm",
           *           "kind": "destination",
           *           "name": "CRM",
           *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "invocation_inputs": {
           *             "body": {
           *               "order": "{{trigger.body.id}}"
           *             }
           *           }
           *         }
           *       ],
           *       "edges": [
           *         {
           *           "id": "e_begin",
           *           "source_type": "trigger",
           *           "target_step_id": "only_paid"
           *         },
           *         {
           *           "id": "e_paid",
           *           "source_type": "step",
           *           "source_step_id": "only_paid",
           *           "target_step_id": "to_crm"
           *         }
           *       ],
           *       "steps_count": 2,
           *       "edges_count": 2,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenWorkflow"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  createWorkflow: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Paid order to CRM",
         *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
         *       "steps": [
         *         {
         *           "id": "only_paid",
         *           "kind": "filter",
         *           "name": "Paid only",
         *           "config": {
         *             "conditions": {
         *               "trigger": {
         *                 "body": {
         *                   "status": "paid"
         *                 }
         *               }
         *             }
         *           }
         *         },
         *         {
         *           "id": "to_crm",
         *           "kind": "destination",
         *           "name": "CRM",
         *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *           "invocation_inputs": {
         *             "body": {
         *               "order": "{{trigger.body.id}}"
         *             }
         *           }
         *         }
         *       ],
         *       "edges": [
         *         {
         *           "id": "e_begin",
         *           "source_type": "trigger",
         *           "target_step_id": "only_paid"
         *         },
         *         {
         *           "id": "e_paid",
         *           "source_type": "step",
         *           "source_step_id": "only_paid",
         *           "target_step_id": "to_crm"
         *         }
         *       ]
         *     }
         */
        "application/json": components["schemas"]["WorkflowWrite"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "name": "Paid order to CRM",
           *       "description": null,
           *       "status": "active",
           *       "version": 1,
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "shop",
           *         "type": "WEBHOOK",
           *         "status": "enabled",
           *         "provider_key": null,
           *         "definition_key": null,
           *         "definition_name": null,
           *         "output_schema": null,
           *         "schema_provenance": "none",
           *         "primary_output": "body",
           *         "export_path": null,
           *         "sample": null
           *       },
           *       "capabilities": {
           *         "branching": true,
           *         "fan_out": true,
           *         "join": true,
           *         "sequential_action_loop": true,
           *         "runtime_executable": true,
           *         "runtime_issue": null
           *       },
           *       "steps": [
           *         {
           *           "id": "only_paid",
           *           "kind": "filter",
           *           "name": "Paid only",
           *           "config": {
           *             "conditions": {
           *               "trigger": {
           *                 "body": {
           *                   "status": "paid"
           *                 }
           *               }
           *             }
           *           }
           *         },
           *         {
           *           "id": "to_crm",
           *           "kind": "destination",
           *           "name": "CRM",
           *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "invocation_inputs": {
           *             "body": {
           *               "order": "{{trigger.body.id}}"
           *             }
           *           }
           *         }
           *       ],
           *       "edges": [
           *         {
           *           "id": "e_begin",
           *           "source_type": "trigger",
           *           "target_step_id": "only_paid"
           *         },
           *         {
           *           "id": "e_paid",
           *           "source_type": "step",
           *           "source_step_id": "only_paid",
           *           "target_step_id": "to_crm"
           *         }
           *       ],
           *       "steps_count": 2,
           *       "edges_count": 2,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenWorkflow"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getWorkflow: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Workflow */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "name": "Paid order to CRM",
           *       "description": null,
           *       "status": "active",
           *       "version": 1,
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "shop",
           *         "type": "WEBHOOK",
           *         "status": "enabled",
           *         "provider_key": null,
           *         "definition_key": null,
           *         "definition_name": null,
           *         "output_schema": null,
           *         "schema_provenance": "none",
           *         "primary_output": "body",
           *         "export_path": null,
           *         "sample": null
           *       },
           *       "capabilities": {
           *         "branching": true,
           *         "fan_out": true,
           *         "join": true,
           *         "sequential_action_loop": true,
           *         "runtime_executable": true,
           *         "runtime_issue": null
           *       },
           *       "steps": [
           *         {
           *           "id": "only_paid",
           *           "kind": "filter",
           *           "name": "Paid only",
           *           "config": {
           *             "conditions": {
           *               "trigger": {
           *                 "body": {
           *                   "status": "paid"
           *                 }
           *               }
           *             }
           *           }
           *         },
           *         {
           *           "id": "to_crm",
           *           "kind": "destination",
           *           "name": "CRM",
           *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "invocation_inputs": {
           *             "body": {
           *               "order": "{{trigger.body.id}}"
           *             }
           *           }
           *         }
           *       ],
           *       "edges": [
           *         {
           *           "id": "e_begin",
           *           "source_type": "trigger",
           *           "target_step_id": "only_paid"
           *         },
           *         {
           *           "id": "e_paid",
           *           "source_type": "step",
           *           "source_step_id": "only_paid",
           *           "target_step_id": "to_crm"
           *         }
           *       ],
           *       "steps_count": 2,
           *       "edges_count": 2,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["Workflow"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  deleteWorkflow: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowDeleted */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "deleted": true,
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "source_deleted": false
           *     }
           */
          "application/json": components["schemas"]["WorkflowDeleted"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  updateWorkflow: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "status": "paused",
         *       "version": 1
         *     }
         */
        "application/json": components["schemas"]["WorkflowPatch"]
      }
    }
    responses: {
      /** @description The record, with what is left open */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "team_id": "tm_demo",
           *       "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *       "name": "Paid order to CRM",
           *       "description": null,
           *       "status": "paused",
           *       "version": 1,
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "shop",
           *         "type": "WEBHOOK",
           *         "status": "enabled",
           *         "provider_key": null,
           *         "definition_key": null,
           *         "definition_name": null,
           *         "output_schema": null,
           *         "schema_provenance": "none",
           *         "primary_output": "body",
           *         "export_path": null,
           *         "sample": null
           *       },
           *       "capabilities": {
           *         "branching": true,
           *         "fan_out": true,
           *         "join": true,
           *         "sequential_action_loop": true,
           *         "runtime_executable": true,
           *         "runtime_issue": null
           *       },
           *       "steps": [
           *         {
           *           "id": "only_paid",
           *           "kind": "filter",
           *           "name": "Paid only",
           *           "config": {
           *             "conditions": {
           *               "trigger": {
           *                 "body": {
           *                   "status": "paid"
           *                 }
           *               }
           *             }
           *           }
           *         },
           *         {
           *           "id": "to_crm",
           *           "kind": "destination",
           *           "name": "CRM",
           *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *           "invocation_inputs": {
           *             "body": {
           *               "order": "{{trigger.body.id}}"
           *             }
           *           }
           *         }
           *       ],
           *       "edges": [
           *         {
           *           "id": "e_begin",
           *           "source_type": "trigger",
           *           "target_step_id": "only_paid"
           *         },
           *         {
           *           "id": "e_paid",
           *           "source_type": "step",
           *           "source_step_id": "only_paid",
           *           "target_step_id": "to_crm"
           *         }
           *       ],
           *       "steps_count": 2,
           *       "edges_count": 2,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z"
           *     }
           */
          "application/json": components["schemas"]["WrittenWorkflow"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  listWorkflowRuns: {
    parameters: {
      query?: {
        /** @description next_cursor of the page before */
        cursor?: string
        /** @description Alias of to: ISO 8601, now, or now-<n><s|m|h|d> */
        end?: string
        /** @description Start of the window; unless told all there are: ISO 8601, now, or now-<n><s|m|h|d> */
        from?: string
        /** @description Rows in a page; less than 1 is taken as 1, more than 255 is taken as 255 */
        limit?: number
        /** @description Alias of cursor */
        next?: string
        /** @description Alias of from: ISO 8601, now, or now-<n><s|m|h|d> */
        start?: string
        /** @description Of these states; repeat or separate by commas */
        status?: ("queued" | "running" | "succeeded" | "failed")[]
        /** @description End of the window: ISO 8601, now, or now-<n><s|m|h|d> */
        to?: string
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowRunList */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "count": 1,
           *       "next_cursor": null,
           *       "models": [
           *         {
           *           "id": "wfr_01kak203r6v1f7q0p5n3k2j4rs",
           *           "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *           "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *           "run_type": "workflow",
           *           "status": "failed",
           *           "outcome": "failed",
           *           "workflow_version": 1,
           *           "attempt_count": 1,
           *           "error_code": "BAD_RESPONSE",
           *           "error_message": "HTTP 500",
           *           "error_step_id": "to_crm",
           *           "hold_reason": null,
           *           "steps_count": 2,
           *           "succeeded_steps": 1,
           *           "failed_steps": 1,
           *           "skipped_steps": 0,
           *           "pending_steps": 0,
           *           "running_steps": 0,
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": "2026-01-01T00:00:00.900Z",
           *           "duration_ms": 900,
           *           "created_at": "2026-01-01T00:00:00.000Z",
           *           "updated_at": "2026-01-01T00:00:00.900Z"
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowRunList"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  clearWorkflowRuns: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description ClearedRuns */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "deleted": 12,
           *       "retained_active": 1,
           *       "has_more": false
           *     }
           */
          "application/json": components["schemas"]["ClearedRuns"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  getWorkflowRun: {
    parameters: {
      query?: {
        /** @description Shows what began the run, and what its steps were given and gave, without secrets */
        include_previews?: boolean
      }
      header?: {
        /** @description The `ETag` of an answer that the caller has: while it is the same, it is 304 without a body */
        "If-None-Match"?: components["parameters"]["IfNoneMatch"]
      }
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
        /**
         * @description The run's id
         * @example wfr_01kak203r6v1f7q0p5n3k2j4rs
         */
        runId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description WorkflowRunDetail */
      200: {
        headers: {
          /** @description Of these bytes; `If-None-Match` asks whether they are others by now */
          ETag?: string
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfr_01kak203r6v1f7q0p5n3k2j4rs",
           *       "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *       "run_type": "workflow",
           *       "status": "failed",
           *       "outcome": "failed",
           *       "workflow_version": 1,
           *       "attempt_count": 1,
           *       "error_code": "BAD_RESPONSE",
           *       "error_message": "HTTP 500",
           *       "error_step_id": "to_crm",
           *       "hold_reason": null,
           *       "steps_count": 2,
           *       "succeeded_steps": 1,
           *       "failed_steps": 1,
           *       "skipped_steps": 0,
           *       "pending_steps": 0,
           *       "running_steps": 0,
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.900Z",
           *       "duration_ms": 900,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.900Z",
           *       "version": {
           *         "number": 1,
           *         "definition_hash": "sha256:6f0c",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "created_by_user_id": null,
           *         "current_version": 1,
           *         "is_current": true,
           *         "workflow_name": "Paid order to CRM",
           *         "steps": [
           *           {
           *             "id": "only_paid",
           *             "kind": "filter",
           *             "name": "Paid only",
           *             "config": {
           *               "conditions": {
           *                 "trigger": {
           *                   "body": {
           *                     "status": "paid"
           *                   }
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "to_crm",
           *             "kind": "destination",
           *             "name": "CRM",
           *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "invocation_inputs": {
           *               "body": {
           *                 "order": "{{trigger.body.id}}"
           *               }
           *             }
           *           }
           *         ],
           *         "edges": [
           *           {
           *             "id": "e_begin",
           *             "source_type": "trigger",
           *             "target_step_id": "only_paid"
           *           },
           *           {
           *             "id": "e_paid",
           *             "source_type": "step",
           *             "source_step_id": "only_paid",
           *             "target_step_id": "to_crm"
           *           }
           *         ],
           *         "formatter_engine_version": null,
           *         "resources": [
           *           {
           *             "step_id": "to_crm",
           *             "type": "destination",
           *             "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "name": "CRM",
           *             "content_hash": "sha256:a1",
           *             "updated_at": "2026-01-01T00:00:00.000Z",
           *             "exists": true
           *           }
           *         ]
           *       },
           *       "trigger": {
           *         "type": "request",
           *         "request_id": "req_01kak203r6g7b3k6j1h9f8e0mn",
           *         "source": {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "shop",
           *           "provider_key": null,
           *           "trigger_name": "Webhook",
           *           "definition_key": null
           *         },
           *         "delivery_mode": "webhook",
           *         "method": "POST",
           *         "path": "/orders",
           *         "content_type": "application/json",
           *         "size_bytes": 31,
           *         "received_at": "2026-01-01T00:00:00.000Z",
           *         "is_retry": false,
           *         "preview": null
           *       },
           *       "retry": {
           *         "count": 0,
           *         "last_requested_at": null,
           *         "last_step_id": null,
           *         "retryable_step_ids": [
           *           "to_crm"
           *         ]
           *       },
           *       "steps": [
           *         {
           *           "id": "wse_01kak203r6w2g8r1q6p4m3k5st",
           *           "step_id": "to_crm",
           *           "name": "CRM",
           *           "kind": "destination",
           *           "status": "failed",
           *           "execution_index": 1,
           *           "input": {
           *             "source_type": "step",
           *             "source_step_id": "only_paid",
           *             "source_port": "matched"
           *           },
           *           "output_port": null,
           *           "response_status": 500,
           *           "error_code": "BAD_RESPONSE",
           *           "error_message": "HTTP 500",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": "2026-01-01T00:00:00.900Z",
           *           "output_ports": [],
           *           "skip_reason": null,
           *           "handled": false,
           *           "attempt_count": 1,
           *           "max_attempts": 1,
           *           "attempts": [
           *             {
           *               "number": 1,
           *               "status": "failed",
           *               "response_status": 500,
           *               "error_code": "BAD_RESPONSE",
           *               "started_at": "2026-01-01T00:00:00.000Z",
           *               "finished_at": "2026-01-01T00:00:00.900Z",
           *               "duration_ms": 900
           *             }
           *           ],
           *           "wait": null,
           *           "warnings": [],
           *           "iterations": null,
           *           "resource": {
           *             "type": "destination",
           *             "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
           *           },
           *           "queued_at": "2026-01-01T00:00:00.000Z",
           *           "duration_ms": 900,
           *           "input_preview": null,
           *           "output_preview": null
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowRunDetail"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  retryWorkflowStep: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
        /**
         * @description The run's id
         * @example wfr_01kak203r6v1f7q0p5n3k2j4rs
         */
        runId: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "step_id": "to_crm"
         *     }
         */
        "application/json": components["schemas"]["StepRetryInput"]
      }
    }
    responses: {
      /** @description RetriedStep */
      202: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfr_01kak203r6v1f7q0p5n3k2j4rs",
           *       "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "workflow_version": 1,
           *       "status": "queued",
           *       "retry_outbox_id": "wro_01kak27b05x4j0t3s8r6p5n7vw",
           *       "retry_step": {
           *         "step_id": "to_crm",
           *         "name": "CRM"
           *       }
           *     }
           */
          "application/json": components["schemas"]["RetriedStep"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  testWorkflow: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path: {
        /**
         * @description The workflow's id
         * @example wfl_01kak1z4r3g7b3k6j1h9f8e0mn
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "mode": "dry_run",
         *       "trigger": {
         *         "method": "POST",
         *         "path": "/",
         *         "headers": {
         *           "content-type": "application/json",
         *           "x-shop-signature": "sha256=4f2a"
         *         },
         *         "body": {
         *           "type": "order.created",
         *           "id": 1
         *         }
         *       },
         *       "mocks": {
         *         "to_crm": {
         *           "error": {
         *             "code": "BAD_RESPONSE",
         *             "message": "simulated"
         *           }
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["WorkflowTestInput"]
      }
    }
    responses: {
      /** @description WorkflowTest */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfr_01kak203r4g7b3k6j1h9f8e0mn",
           *       "test": true,
           *       "mode": "dry_run",
           *       "workflow_id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *       "request_id": null,
           *       "run_type": "workflow",
           *       "status": "failed",
           *       "outcome": "failed",
           *       "hold_reason": null,
           *       "workflow_version": 1,
           *       "attempt_count": 1,
           *       "error_code": "BAD_RESPONSE",
           *       "error_message": "simulated",
           *       "error_step_id": "to_crm",
           *       "steps_count": 1,
           *       "succeeded_steps": 0,
           *       "failed_steps": 1,
           *       "skipped_steps": 0,
           *       "pending_steps": 0,
           *       "running_steps": 0,
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.000Z",
           *       "duration_ms": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "version": {
           *         "number": 1,
           *         "definition_hash": "sha256:6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "created_by_user_id": null,
           *         "current_version": 1,
           *         "is_current": true,
           *         "workflow_name": "Paid order to CRM",
           *         "steps": [
           *           {
           *             "id": "only_paid",
           *             "kind": "filter",
           *             "name": "Paid only",
           *             "config": {
           *               "conditions": {
           *                 "trigger": {
           *                   "body": {
           *                     "status": "paid"
           *                   }
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "to_crm",
           *             "kind": "destination",
           *             "name": "CRM",
           *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "invocation_inputs": {
           *               "body": {
           *                 "order": "{{trigger.body.id}}"
           *               }
           *             }
           *           }
           *         ],
           *         "edges": [
           *           {
           *             "id": "e_begin",
           *             "source_type": "trigger",
           *             "target_step_id": "only_paid"
           *           },
           *           {
           *             "id": "e_paid",
           *             "source_type": "step",
           *             "source_step_id": "only_paid",
           *             "target_step_id": "to_crm"
           *           }
           *         ],
           *         "formatter_engine_version": null,
           *         "resources": []
           *       },
           *       "trigger": {
           *         "type": "request",
           *         "request_id": null,
           *         "source": {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "shop",
           *           "provider_key": null,
           *           "definition_key": null,
           *           "trigger_name": "Webhook"
           *         },
           *         "delivery_mode": "manual",
           *         "method": "POST",
           *         "path": "/",
           *         "content_type": "application/json",
           *         "size_bytes": 29,
           *         "received_at": "2026-01-01T00:00:00.000Z",
           *         "is_retry": false,
           *         "preview": null
           *       },
           *       "retry": {
           *         "count": 0,
           *         "last_requested_at": null,
           *         "last_step_id": null,
           *         "retryable_step_ids": []
           *       },
           *       "steps": [
           *         {
           *           "id": "wse_01kak203r4g7b3k6j1h9f8e0mn",
           *           "step_id": "to_crm",
           *           "name": "CRM",
           *           "kind": "destination",
           *           "status": "failed",
           *           "execution_index": 0,
           *           "input": {
           *             "source_type": "trigger",
           *             "source_step_id": null,
           *             "source_port": "out"
           *           },
           *           "output_port": null,
           *           "output_ports": [],
           *           "skip_reason": null,
           *           "response_status": null,
           *           "error_code": "BAD_RESPONSE",
           *           "error_message": "simulated",
           *           "handled": false,
           *           "attempt_count": 1,
           *           "max_attempts": 1,
           *           "attempts": [],
           *           "wait": null,
           *           "warnings": [],
           *           "iterations": null,
           *           "resource": {
           *             "type": "destination",
           *             "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
           *           },
           *           "queued_at": "2026-01-01T00:00:00.000Z",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": "2026-01-01T00:00:00.000Z",
           *           "duration_ms": 0,
           *           "input_preview": null,
           *           "output_preview": null,
           *           "simulated": true
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowTest"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  saveWorkflowAggregate: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "source": {
         *         "name": "shop",
         *         "type": "WEBHOOK"
         *       },
         *       "workflow": {
         *         "name": "Paid order to CRM",
         *         "steps": [
         *           {
         *             "id": "only_paid",
         *             "kind": "filter",
         *             "name": "Paid only",
         *             "config": {
         *               "conditions": {
         *                 "trigger": {
         *                   "body": {
         *                     "status": "paid"
         *                   }
         *                 }
         *               }
         *             }
         *           },
         *           {
         *             "id": "to_crm",
         *             "kind": "destination",
         *             "name": "CRM",
         *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *             "invocation_inputs": {
         *               "body": {
         *                 "order": "{{trigger.body.id}}"
         *               }
         *             }
         *           }
         *         ],
         *         "edges": [
         *           {
         *             "id": "e_begin",
         *             "source_type": "trigger",
         *             "target_step_id": "only_paid"
         *           },
         *           {
         *             "id": "e_paid",
         *             "source_type": "step",
         *             "source_step_id": "only_paid",
         *             "target_step_id": "to_crm"
         *           }
         *         ]
         *       }
         *     }
         */
        "application/json": components["schemas"]["WorkflowAggregateInput"]
      }
    }
    responses: {
      /** @description WorkflowAggregate */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "workflow": {
           *         "id": "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
           *         "team_id": "tm_demo",
           *         "source_id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "name": "Paid order to CRM",
           *         "description": null,
           *         "status": "active",
           *         "version": 1,
           *         "source": {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "shop",
           *           "type": "WEBHOOK",
           *           "status": "enabled",
           *           "provider_key": null,
           *           "definition_key": null,
           *           "definition_name": null,
           *           "output_schema": null,
           *           "schema_provenance": "none",
           *           "primary_output": "body",
           *           "export_path": null,
           *           "sample": null
           *         },
           *         "capabilities": {
           *           "branching": true,
           *           "fan_out": true,
           *           "join": true,
           *           "sequential_action_loop": true,
           *           "runtime_executable": true,
           *           "runtime_issue": null
           *         },
           *         "steps": [
           *           {
           *             "id": "only_paid",
           *             "kind": "filter",
           *             "name": "Paid only",
           *             "config": {
           *               "conditions": {
           *                 "trigger": {
           *                   "body": {
           *                     "status": "paid"
           *                   }
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "to_crm",
           *             "kind": "destination",
           *             "name": "CRM",
           *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "invocation_inputs": {
           *               "body": {
           *                 "order": "{{trigger.body.id}}"
           *               }
           *             }
           *           }
           *         ],
           *         "edges": [
           *           {
           *             "id": "e_begin",
           *             "source_type": "trigger",
           *             "target_step_id": "only_paid"
           *           },
           *           {
           *             "id": "e_paid",
           *             "source_type": "step",
           *             "source_step_id": "only_paid",
           *             "target_step_id": "to_crm"
           *           }
           *         ],
           *         "steps_count": 2,
           *         "edges_count": 2,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "source": {
           *         "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "team_id": "tm_demo",
           *         "name": "shop",
           *         "description": "Orders of the shop",
           *         "type": "WEBHOOK",
           *         "input_type": "webhook",
           *         "status": "enabled",
           *         "url": "https://hooks.example.com/e/src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *         "config": {
           *           "auth_type": "HMAC",
           *           "auth": {
           *             "webhook_secret_key": "****shop",
           *             "header_key": "x-shop-signature",
           *             "algorithm": "sha256",
           *             "encoding": "hex",
           *             "prefix": "sha256="
           *           },
           *           "allowed_http_methods": [
           *             "POST",
           *             "PUT",
           *             "PATCH",
           *             "DELETE"
           *           ],
           *           "custom_response": null,
           *           "mode": "webhook",
           *           "proxy": null,
           *           "chat_defer_ephemeral": false,
           *           "rate_limit": null,
           *           "rate_limit_period": null
           *         },
           *         "disabled_at": null,
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "updated_at": "2026-01-01T00:00:00.000Z"
           *       },
           *       "actions": [],
           *       "created": {
           *         "workflow": true,
           *         "source": true,
           *         "actions": []
           *       }
           *     }
           */
          "application/json": components["schemas"]["WorkflowAggregate"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
  testUnsavedWorkflow: {
    parameters: {
      query?: never
      header?: {
        /**
         * @description The call is carried out once for a key of its caller, and answers the same again for a day: 1 to 255 characters of printable ASCII
         * @example "8e03978e-40d5-43e8-bc93-6894a57f9324"
         */
        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"]
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        /**
         * @example {
         *       "mode": "dry_run",
         *       "trigger": {
         *         "method": "POST",
         *         "path": "/",
         *         "headers": {
         *           "content-type": "application/json",
         *           "x-shop-signature": "sha256=4f2a"
         *         },
         *         "body": {
         *           "type": "order.created",
         *           "id": 1
         *         }
         *       },
         *       "mocks": {
         *         "to_crm": {
         *           "error": {
         *             "code": "BAD_RESPONSE",
         *             "message": "simulated"
         *           }
         *         }
         *       },
         *       "steps": [
         *         {
         *           "id": "only_paid",
         *           "kind": "filter",
         *           "name": "Paid only",
         *           "config": {
         *             "conditions": {
         *               "trigger": {
         *                 "body": {
         *                   "status": "paid"
         *                 }
         *               }
         *             }
         *           }
         *         },
         *         {
         *           "id": "to_crm",
         *           "kind": "destination",
         *           "name": "CRM",
         *           "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
         *           "invocation_inputs": {
         *             "body": {
         *               "order": "{{trigger.body.id}}"
         *             }
         *           }
         *         }
         *       ],
         *       "edges": [
         *         {
         *           "id": "e_begin",
         *           "source_type": "trigger",
         *           "target_step_id": "only_paid"
         *         },
         *         {
         *           "id": "e_paid",
         *           "source_type": "step",
         *           "source_step_id": "only_paid",
         *           "target_step_id": "to_crm"
         *         }
         *       ]
         *     }
         */
        "application/json": components["schemas"]["UnsavedWorkflowTestInput"]
      }
    }
    responses: {
      /** @description WorkflowTest */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          /**
           * @example {
           *       "id": "wfr_01kak203r4g7b3k6j1h9f8e0mn",
           *       "test": true,
           *       "mode": "dry_run",
           *       "workflow_id": null,
           *       "request_id": null,
           *       "run_type": "workflow",
           *       "status": "failed",
           *       "outcome": "failed",
           *       "hold_reason": null,
           *       "workflow_version": 0,
           *       "attempt_count": 1,
           *       "error_code": "BAD_RESPONSE",
           *       "error_message": "simulated",
           *       "error_step_id": "to_crm",
           *       "steps_count": 1,
           *       "succeeded_steps": 0,
           *       "failed_steps": 1,
           *       "skipped_steps": 0,
           *       "pending_steps": 0,
           *       "running_steps": 0,
           *       "started_at": "2026-01-01T00:00:00.000Z",
           *       "finished_at": "2026-01-01T00:00:00.000Z",
           *       "duration_ms": 0,
           *       "created_at": "2026-01-01T00:00:00.000Z",
           *       "updated_at": "2026-01-01T00:00:00.000Z",
           *       "version": {
           *         "number": 1,
           *         "definition_hash": "sha256:6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f",
           *         "created_at": "2026-01-01T00:00:00.000Z",
           *         "created_by_user_id": null,
           *         "current_version": 1,
           *         "is_current": true,
           *         "workflow_name": "Paid order to CRM",
           *         "steps": [
           *           {
           *             "id": "only_paid",
           *             "kind": "filter",
           *             "name": "Paid only",
           *             "config": {
           *               "conditions": {
           *                 "trigger": {
           *                   "body": {
           *                     "status": "paid"
           *                   }
           *                 }
           *               }
           *             }
           *           },
           *           {
           *             "id": "to_crm",
           *             "kind": "destination",
           *             "name": "CRM",
           *             "resource_id": "des_01kak1w2n4d4y0g3f8e6c5b7hj",
           *             "invocation_inputs": {
           *               "body": {
           *                 "order": "{{trigger.body.id}}"
           *               }
           *             }
           *           }
           *         ],
           *         "edges": [
           *           {
           *             "id": "e_begin",
           *             "source_type": "trigger",
           *             "target_step_id": "only_paid"
           *           },
           *           {
           *             "id": "e_paid",
           *             "source_type": "step",
           *             "source_step_id": "only_paid",
           *             "target_step_id": "to_crm"
           *           }
           *         ],
           *         "formatter_engine_version": null,
           *         "resources": []
           *       },
           *       "trigger": {
           *         "type": "request",
           *         "request_id": null,
           *         "source": {
           *           "id": "src_01kak1v8m0c3x9f2e7d5b4a6gh",
           *           "name": "shop",
           *           "provider_key": null,
           *           "definition_key": null,
           *           "trigger_name": "Webhook"
           *         },
           *         "delivery_mode": "manual",
           *         "method": "POST",
           *         "path": "/",
           *         "content_type": "application/json",
           *         "size_bytes": 29,
           *         "received_at": "2026-01-01T00:00:00.000Z",
           *         "is_retry": false,
           *         "preview": null
           *       },
           *       "retry": {
           *         "count": 0,
           *         "last_requested_at": null,
           *         "last_step_id": null,
           *         "retryable_step_ids": []
           *       },
           *       "steps": [
           *         {
           *           "id": "wse_01kak203r4g7b3k6j1h9f8e0mn",
           *           "step_id": "to_crm",
           *           "name": "CRM",
           *           "kind": "destination",
           *           "status": "failed",
           *           "execution_index": 0,
           *           "input": {
           *             "source_type": "trigger",
           *             "source_step_id": null,
           *             "source_port": "out"
           *           },
           *           "output_port": null,
           *           "output_ports": [],
           *           "skip_reason": null,
           *           "response_status": null,
           *           "error_code": "BAD_RESPONSE",
           *           "error_message": "simulated",
           *           "handled": false,
           *           "attempt_count": 1,
           *           "max_attempts": 1,
           *           "attempts": [],
           *           "wait": null,
           *           "warnings": [],
           *           "iterations": null,
           *           "resource": {
           *             "type": "destination",
           *             "id": "des_01kak1w2n4d4y0g3f8e6c5b7hj"
           *           },
           *           "queued_at": "2026-01-01T00:00:00.000Z",
           *           "started_at": "2026-01-01T00:00:00.000Z",
           *           "finished_at": "2026-01-01T00:00:00.000Z",
           *           "duration_ms": 0,
           *           "input_preview": null,
           *           "output_preview": null,
           *           "simulated": true
           *         }
           *       ]
           *     }
           */
          "application/json": components["schemas"]["WorkflowTest"]
        }
      }
      /** @description What was wrong */
      default: {
        headers: {
          [name: string]: unknown
        }
        content: {
          "application/json": components["schemas"]["ErrorBody"]
        }
      }
    }
  }
}
