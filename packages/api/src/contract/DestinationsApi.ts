import { destination } from "@tidegate/resources/Destination"
import { example } from "@tidegate/resources/destination/Example"
import { groupOf } from "./Group.ts"
import * as Parameters from "./Parameters.ts"

const { record } = example

/** Outbound targets with their pacing and credentials. */
export class DestinationsApi extends groupOf(destination, {
  title: "Destinations",
  query: Parameters.resources,
  description: "Where events are delivered to, how fast, and with which credentials.",
  list: { description: "One page, without a cursor: at most 255, each with its attempts of the last 24 hours." },
  create: {
    description: "Where the URL leads is checked with every delivery; private networks are refused unless allowed."
  },
  upsert: { description: "What is left out stays as it is; secrets may be given masked." },
  retrieve: { description: "Secrets are masked." },
  update: {
    description: "What is given is merged into the destination; `auth` is replaced whole.",
    answer: { ...record, config: { ...record.config, rate_limit: 5 } }
  },
  replace: { description: "What is left out has its default; secrets may be given masked." },
  switch: {
    disable: {
      description:
        "What waits for it is cancelled, and its connections route nothing to it. Repeating it changes nothing."
    },
    enable: { description: "Its connections route to it again. Repeating it changes nothing." }
  },
  delete: {
    summary: "Delete a destination and its connections",
    description: "What waits for it is cancelled."
  }
}) {}
