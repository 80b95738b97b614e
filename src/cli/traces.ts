import { createRequire } from 'node:module'
import type { Environment } from '../config/reading.ts'
import { StartError } from '../errors.ts'
import { createTracer, type TraceApi } from '../observe/tracer.ts'
import { version } from '../wire/version.ts'

/**
 * The parts that are used of `@opentelemetry/sdk-node`, and of the `@opentelemetry/api` that it loads: another copy of
 * the API records nothing.
 */
type Sdk = {
  api: TraceApi
  NodeSDK: new (options: { serviceName: string }) => { start(): void; shutdown(): Promise<void> }
}

const name: string = '@opentelemetry/sdk-node'

/** Starts OpenTelemetry if its own variables ask for traces; they also set where traces go. */
export function openTraces(env: Environment) {
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = env
  if (exporter === 'none' || !(exporter || endpoint)) return undefined
  const { api, NodeSDK } = loadSdk()
  const sdk = new NodeSDK({ serviceName: env.OTEL_SERVICE_NAME ?? 'cellkeep' })
  sdk.start()
  return { api, ids: createTracer(api, version).ids, close: () => sdk.shutdown() }
}

function loadSdk(): Sdk {
  try {
    const ofSdk = createRequire(import.meta.resolve(name))
    return { ...ofSdk(name), api: ofSdk('@opentelemetry/api') }
  } catch (error) {
    throw new StartError(
      'configuration',
      `OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_ENDPOINT need the package ${name}, which is not installed. Run \`npm install ${name}\`, or unset them.`,
      78,
      { cause: error },
    )
  }
}
