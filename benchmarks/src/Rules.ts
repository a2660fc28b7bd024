/** Rules of connections that several scenarios measure. */

export const transformation = (name: string, code: string) => ({ type: "transform", transformation: { name, code } })

/** Replaces a value of the body by one of the same length, so that the target still recognises the body. */
export const transform = transformation(
  "touch",
  `addHandler("transform", (request) => {
  request.body.type = "order.changed"
  return request
})`
)

/** No request is a duplicate: the cost of the check is measured. */
export const deduplicate = { type: "deduplicate", window: 60_000, include_fields: ["body.run", "body.sequence"] }
