import { codeMessage, codeStatus } from '../src/error-codes.ts'
import { requestRules } from '../src/errors.ts'
import { type BuiltinReason, catalogue } from '../src/reasons.ts'

/** docs/errors.md: the catalogue of reasons. */
export function errorsPage(): string {
  const entries = Object.entries(catalogue) as [BuiltinReason, (typeof catalogue)[BuiltinReason]][]
  const codes = [...new Set(entries.map(([, { code }]) => code))].sort((a, b) => b - a)
  return [
    introduction,
    '| Reason | Code | HTTP | Meaning |',
    '|---|---|---|---|',
    ...entries.map(
      ([reason, { code, status = codeStatus(code), doc }]) =>
        `| \`${reason}\` | ${code} | ${status} | ${doc.replaceAll('|', '\\|')} |`,
    ),
    '',
    '## Details of `invalid_request`',
    '',
    'If a request breaks several rules, `detail` names one of them.',
    '',
    '| Rule | `detail` |',
    '|---|---|',
    ...Object.entries(requestRules).map(([detail, rule]) => `| ${rule} | \`${detail}\` |`),
    '',
    '## Codes',
    '',
    'Each code has a fixed text for people. Programs switch on the reason.',
    '',
    '| Code | HTTP | `message` |',
    '|---|---|---|',
    ...codes.map((code) => `| ${code} | ${codeStatus(code)} | ${codeMessage(code)} |`),
    '',
  ].join('\n')
}

const introduction = `<!-- Generated from src/reasons.ts by scripts/docs.ts; edit the catalogue, not this page. -->
# Errors

The answer to a refused JSON-RPC call has the HTTP status below and the body
\`{"jsonrpc": "2.0", "id": 1, "error": {"code": …, "message": "…", "data": {"reason": "…"}}}\`. The answer to a refused REST
request has the body \`{"error": "<reason>", …}\`; so has, at every path, the answer to a request that is refused before the
call is read, such as \`forbidden_origin\`, \`unsupported_media_type\` and \`payload_too_large\`. Some words in code font below,
such as \`issues\`, \`retry_after\` and \`current_version\`, are further keys beside the reason. The text of an unexpected failure
is never sent: look up the \`X-Request-Id\` of the answer in the log.
`
