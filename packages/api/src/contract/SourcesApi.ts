import { source } from "@tidegate/resources/Source"
import { example } from "@tidegate/resources/source/Example"
import { at } from "@tidegate/resources/Story"
import { groupOf } from "./Group.ts"
import * as Parameters from "./Parameters.ts"

/** Ingress endpoints: a public URL each, verification, and what to answer. */
export class SourcesApi extends groupOf(source, {
  title: "Sources",
  description: "Where requests come in: a public URL each, who may send, and what senders are answered.",
  query: Parameters.resources,
  create: { description: "Its `url` is what senders post to. Without `auth` it accepts everybody." },
  upsert: {
    summary: "Create or update a source by its name",
    description: "The source of this name is updated in part; when there is none, it is created."
  },
  retrieve: { description: "Secrets are masked." },
  update: {
    description: "What is given is merged into the source; `auth`, `custom_response` and `proxy` are replaced whole."
  },
  switch: {
    disable: {
      summary: "Disable a source and its connections",
      description:
        "Requests to it are answered 403 and stored as rejected; what waits on its connections is cancelled. Repeating it changes nothing.",
      answer: { ...example.record, status: "disabled", disabled_at: at }
    },
    enable: {
      description: "With it, the connections that were disabled by disabling it. Repeating it changes nothing."
    }
  },
  delete: {
    summary: "Delete a source and its connections",
    description: "Its URL answers 404 from then on. Its requests and events are kept until retention takes them."
  }
}) {}
