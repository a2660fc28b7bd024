import { Schema } from "effect"
import { RequestData } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"

/** The last request that a connection's source received; `payload_key` is the id of the stored payload. */
export const LatestInput = Schema.Struct({
  source_id: Schema.String,
  request_id: Schema.String,
  original_event_data_id: Schema.String,
  created_at: Timestamp,
  payload_key: Schema.String,
  input: Schema.NullOr(
    Schema.Struct({
      method: RequestData.fields.method,
      path: RequestData.fields.path,
      query: RequestData.fields.parsed_query,
      headers: RequestData.fields.headers,
      body: RequestData.fields.body
    })
  )
}).annotate({ identifier: "LatestInput" })

export interface LatestInput extends Schema.Schema.Type<typeof LatestInput> {}
