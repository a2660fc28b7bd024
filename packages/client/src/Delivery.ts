/** A delivery through a tunnel: one attempt of an event. */
export interface Delivery {
  /** The same for one attempt of an event, also when it is sent again over another connection. */
  readonly job_id: string
  readonly timeout_ms: number
  readonly request: {
    readonly event_id: string
    /** The id of the stored payload: that of the request, or the output of a transformation. */
    readonly event_data_id: string
    readonly request_id: string
    readonly connection_id: string
    readonly attempt_number: number
    readonly method: string
    /** Appended to the local URL; includes the query. */
    readonly path: string
    readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
    readonly body?: string
    readonly body_base64?: string
  }
}
