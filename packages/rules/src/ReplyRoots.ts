import type { TemplateRoots } from "@tidegate/interpolation/Template"

/** What the placeholders of a custom response can begin with. */
export const replyRoots = {
  body: "any",
  headers: "headers",
  query: "any",
  path: "none",
  method: "none",
  request: ["id"]
} as const satisfies TemplateRoots<string>

export type ReplyRoot = keyof typeof replyRoots
