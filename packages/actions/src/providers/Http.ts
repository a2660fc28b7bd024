import { AnyJson, needed, setting } from "@tidegate/connectors/Settings"
import { OneOf } from "@tidegate/model/AuthSettings"
import { answered, answerSample, answerSchema } from "../Answers.ts"
import { httpModes } from "../AuthModes.ts"
import { requestInputs, requestOf, sentToOrigin, Url } from "../HttpRequest.ts"
import { calling, type Provider } from "../Provider.ts"

export const http: Provider = {
  key: "http",
  name: "HTTP",
  description: "Calls any endpoint.",
  icon_key: "globe",
  manifest_version: "1.0.0",
  auth: httpModes,
  actions: [
    calling({
      key: "request",
      name: "Request",
      description: "Sends a request, and gives its answer of at most 1 MiB. An answer other than 2xx is a failure.",
      category: "core",
      version: "1.0.0",
      inputs: {
        method: setting(OneOf(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), "GET"),
        url: needed(Url, "an absolute http or https URL"),
        ...requestInputs,
        body: setting(
          AnyJson.annotate({ description: "A text is sent as it is, anything else as JSON" }),
          null,
          "must be JSON"
        )
      },
      output: answerSchema,
      primary_output: "body",
      sample: { inputs: { url: "https://api.example.com/orders" }, output: answerSample },
      rate_limit: null,
      sentTo: sentToOrigin,
      call: (inputs, credentials) => requestOf(inputs, credentials, answered)
    })
  ]
}
