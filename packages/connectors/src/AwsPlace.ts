import { Schema } from "effect"
import { awsRegion } from "@tidegate/outbound-auth/AwsPlace"
import { text } from "./Settings.ts"

/** The setting with the region of a service. */
export const AwsRegion = text
  .check(Schema.isPattern(awsRegion.pattern, { message: awsRegion.message }))
  .annotate({ examples: ["eu-central-1"] })
