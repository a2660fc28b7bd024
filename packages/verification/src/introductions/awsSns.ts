import type { Introduction } from "./Introduction.ts"

export const awsSns: Introduction = {
  name: "Amazon SNS",
  description: "Notifications of an SNS topic.",
  documentation: "https://docs.aws.amazon.com/sns/latest/dg/sns-http-https-endpoint-as-subscriber.html",
  setup: [
    "Enter the ARN of the topic here as `topic_arn`: without it, requests of everybody's topics are accepted.",
    "In Amazon SNS, create a subscription of the topic with the protocol HTTPS and the URL of this source as endpoint, without raw message delivery.",
    "The gateway confirms the subscription by itself."
  ]
}
