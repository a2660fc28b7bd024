import type { TemplateRoots } from "@tidegate/interpolation/Template"

/** The roots of placeholders in a custom response. */
export const replyRoots = {
  body: "any",
  headers: "headers",
  query: "any",
  path: "none",
  method: "none",
  request: ["id"]
} as const satisfies TemplateRoots<string>

export type ReplyRoot = keyof typeof replyRoots
