import { server } from '../api/server.ts'

type Call = { method: string; params: Record<string, unknown> }

/** The request as it is posted. None of these contains a credential: the person who runs it adds one. */
export const asJson = ({ method, params }: Call): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

export const asCurl = (call: Call): string =>
  `curl ${location.origin}${server.paths.rpc} -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d '${asJson(call).replaceAll("'", "'\\''")}'`

export const asTypeScript = ({ method, params }: Call): string => {
  const name = /^[A-Za-z_]\w*$/.test(method) ? `.${method}` : `[${JSON.stringify(method)}]`
  return `const result = await client${name}(${JSON.stringify(params, null, 2)})`
}
