import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { catalogue, type MetricName } from '../src/observe/catalogue.ts'

const file = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const alertsFile = file('packaging/prometheus/alerts.yml')
const alertsText = readFileSync(alertsFile, 'utf8')
const alerts = [
  ...alertsText.matchAll(/alert: (\w+)[\s\S]*?severity: (\w+)[\s\S]*?summary: (.*)\n\s*runbook_url: (.*)/g),
].map(([, name = '', severity = '', summary = '', url = '']) => ({
  name,
  severity,
  summary: summary.replaceAll('"', ''),
  url,
}))

type Panel = { title: string; targets?: { expr: string }[] }
const { panels } = JSON.parse(readFileSync(file('packaging/grafana/cellkeep.json'), 'utf8')) as {
  panels: Panel[]
}
const drawn = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

const dir = mkdtempSync(join(tmpdir(), 'ck-alerts-'))
afterAll(() => rmSync(dir, { recursive: true }))
/** Writes a file for promtool as JSON, which is also YAML. */
const written = (name: string, content: unknown): string => {
  const path = join(dir, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

describe('alerts and dashboard', () => {
  it.each([
    ['alerts', alertsText],
    ['dashboard', drawn.join('\n')],
  ])('the %s name exported metrics only, with their labels', (_, text) => {
    const named = [...text.matchAll(/cellkeep_(\w+?)(_bucket|_sum|_count)?(?:\{(.*?)\})?(?![\w{])/g)]
    expect(named.length).toBeGreaterThan(15)
    for (const [all, name, , selector = ''] of named) {
      const metric = catalogue[name as MetricName]
      expect(metric, all).toBeDefined()
      for (const [, label] of selector.matchAll(/(\w+)[!=~]+"/g))
        expect(metric.labels as readonly string[], all).toContain(label)
    }
  })

  it('each alert has its section in the guide', () => {
    const headings = [...readFileSync(file('docs/operations.md'), 'utf8').matchAll(/^#+ (.*)$/gm)].map(
      ([, text = '']) => text.toLowerCase().replaceAll(' ', '-'),
    )
    for (const { name, url } of alerts) expect(headings, name).toContain(url.split('#')[1])
  })
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
if (!hasPromtool) console.warn('not run: promtool (`apt-get install prometheus`) is not installed')

/**
 * Series for `promtool test rules`, one value a minute, or one every 5 minutes if the alert takes over 100 minutes.
 * `0x30` stays at 0, `0+1x30` rises.
 */
type Series = Record<string, string>
const [node, other] = ['instance="a"', 'instance="b"']

const healthy: Series = {
  [`up{job="cellkeep", ${node}}`]: '1x70',
  [`cellkeep_readiness{${node}, reason="ok"}`]: '1x70',
  [`cellkeep_http_requests_total{${node}, outcome="2xx"}`]: '0+600x70',
  [`cellkeep_http_requests_total{${node}, outcome="5xx"}`]: '0+1x70',
  [`cellkeep_rpc_requests_total{${node}, reason="ok"}`]: '0+600x70',
  [`cellkeep_rpc_requests_total{${node}, reason="timeout"}`]: '0+1x70',
  [`cellkeep_http_request_seconds_bucket{${node}, le="0.1"}`]: '0+600x70',
  [`cellkeep_http_request_seconds_bucket{${node}, le="+Inf"}`]: '0+601x70',
  [`cellkeep_db_breaker_open{${node}}`]: '0x70',
  [`cellkeep_db_outcome_unknown_total{${node}}`]: '3x70',
  [`cellkeep_db_sync_standbys{${node}}`]: '1x70',
  [`cellkeep_replica_lag_seconds{${node}, replica="1"}`]: '0.01x70',
  [`cellkeep_bus_up{${node}}`]: '1x70',
  // No client reads the log, so nothing numbers its rows.
  [`cellkeep_audit_backlog_seconds{${node}}`]: '4000x70',
  [`cellkeep_live_connections{${node}, kind="stream"}`]: '0x70',
  [`cellkeep_audit_partitions_ahead{${node}}`]: '2x70',
  [`cellkeep_audit_insert_failures_total{${node}}`]: '2x70',
  [`cellkeep_job_runs_total{${node}, exported_job="cleanup", outcome="ok"}`]: '0+0.1x70',
  [`process_start_time_seconds{${node}}`]: '0x70',
  [`cellkeep_event_loop_delay_seconds{${node}, quantile="0.99"}`]: '0.01x70',
  [`cellkeep_hash_queue_depth{${node}}`]: '3x70',
  [`cellkeep_hash_queue_max{${node}}`]: '64x70',
  [`cellkeep_db_pool{${node}, state="waiting"}`]: '0x70',
  [`cellkeep_db_skew_seconds{${node}}`]: '-0.2x70',
  [`cellkeep_build_info{${node}, version="0.4.0"}`]: '1x70',
  [`cellkeep_build_info{${other}, version="0.4.0"}`]: '1x70',
  [`cellkeep_login_attempts_total{${node}, outcome="invalid_credentials"}`]: '0+2x70',
}

/** For each alert: the series that make it fire, after how many minutes, and its labels besides severity. */
const faults: Record<string, [series: Series, minutes: number, labels: Record<string, string>]> = {
  CellkeepNodeDown: [{ [`up{job="cellkeep", ${node}}`]: '1 0x30' }, 5, { job: 'cellkeep', instance: 'a' }],
  CellkeepNotReady: [
    { [`cellkeep_readiness{${node}, reason="db_unreachable"}`]: '1x30' },
    5,
    { instance: 'a' },
  ],
  CellkeepErrors: [
    {
      [`cellkeep_http_requests_total{${node}, outcome="2xx"}`]: '0+600x30',
      [`cellkeep_http_requests_total{${node}, outcome="5xx"}`]: '0+20x30',
    },
    15,
    {},
  ],
  CellkeepSlow: [
    {
      [`cellkeep_http_request_seconds_bucket{${node}, le="1"}`]: '0+600x30',
      [`cellkeep_http_request_seconds_bucket{${node}, le="5"}`]: '0+700x30',
      [`cellkeep_http_request_seconds_bucket{${node}, le="+Inf"}`]: '0+700x30',
    },
    20,
    {},
  ],
  CellkeepBreakerOpen: [{ [`cellkeep_db_breaker_open{${node}}`]: '0 1x30' }, 5, { instance: 'a' }],
  CellkeepUnknownOutcomes: [
    { [`cellkeep_db_outcome_unknown_total{${node}}`]: '0x5 2x30' },
    7,
    { instance: 'a' },
  ],
  CellkeepStalePrimary: [
    { [`cellkeep_readiness{${node}, reason="stale_primary"}`]: '1x30' },
    1,
    { instance: 'a', reason: 'stale_primary' },
  ],
  CellkeepNoSynchronousStandby: [{ [`cellkeep_db_sync_standbys{${node}}`]: '0x30' }, 5, { instance: 'a' }],
  CellkeepReplicaBehind: [
    { [`cellkeep_replica_lag_seconds{${node}, replica="1"}`]: '6x30' },
    10,
    { replica: '1' },
  ],
  CellkeepBusDown: [{ [`cellkeep_bus_up{${node}}`]: '0x30' }, 5, { instance: 'a' }],
  CellkeepAuditBacklog: [
    {
      [`cellkeep_audit_backlog_seconds{${node}}`]: '60x30',
      [`cellkeep_live_connections{${node}, kind="stream"}`]: '1x30',
    },
    10,
    {},
  ],
  CellkeepNoPartitionAhead: [{ [`cellkeep_audit_partitions_ahead{${node}}`]: '0x60' }, 40, {}],
  CellkeepAuditRowsLost: [
    { [`cellkeep_audit_insert_failures_total{${node}}`]: '0x5 1x30' },
    7,
    { instance: 'a' },
  ],
  CellkeepJobMissed: [
    {
      [`cellkeep_job_runs_total{${node}, exported_job="cleanup", outcome="ok"}`]: '3x90',
      [`process_start_time_seconds{${node}}`]: '0x90',
    },
    80,
    { instance: 'a', exported_job: 'cleanup' },
  ],
  CellkeepEventLoopDelayed: [
    { [`cellkeep_event_loop_delay_seconds{${node}, quantile="0.99"}`]: '0.4x30' },
    10,
    { instance: 'a', quantile: '0.99' },
  ],
  CellkeepHashQueueFull: [
    { [`cellkeep_hash_queue_depth{${node}}`]: '64x30', [`cellkeep_hash_queue_max{${node}}`]: '64x30' },
    1,
    { instance: 'a' },
  ],
  CellkeepPoolWaiting: [
    { [`cellkeep_db_pool{${node}, state="waiting"}`]: '5x30' },
    5,
    { instance: 'a', state: 'waiting' },
  ],
  CellkeepClockSkew: [{ [`cellkeep_db_skew_seconds{${node}}`]: '-8x30' }, 5, { instance: 'a' }],
  CellkeepVersionsDiffer: [
    {
      [`cellkeep_build_info{${node}, version="0.4.0"}`]: '1x320',
      [`cellkeep_build_info{${other}, version="0.5.0"}`]: '1x320',
    },
    1560,
    {},
  ],
  CellkeepFailedLogins: [
    { [`cellkeep_login_attempts_total{${node}, outcome="invalid_credentials"}`]: '0+1x2000 2000+500x20' },
    10_080,
    {},
  ],
}

describe.skipIf(!hasPromtool)('by promtool', () => {
  const promtool = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
    expect(status, `${stdout}${stderr}`).toBe(0)
    return stdout
  }
  const inputs = (series: Series) =>
    Object.entries(series).map(([name, values]) => ({ series: name, values }))

  it('the rules are well-formed, and so is every expression of the dashboard', () => {
    expect(promtool('check', 'rules', alertsFile)).toContain(`${alerts.length} rules found`)
    const rules = drawn.map((expr, at) => ({
      record: `panel:${at}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    promtool('check', 'rules', written('panels.yml', { groups: [{ name: 'panels', rules }] }))
  })

  it('each alert fires for its fault, and none in a healthy hour', () => {
    expect(Object.keys(faults)).toEqual(alerts.map(({ name }) => name))
    const silent = {
      interval: '1m',
      input_series: inputs(healthy),
      alert_rule_test: alerts.map(({ name }) => ({ eval_time: '60m', alertname: name, exp_alerts: [] })),
    }
    const firing = alerts.map(({ name, severity, summary, url }) => {
      const [series, minutes, labels] = faults[name] as (typeof faults)[string]
      const expected = {
        exp_labels: { severity, ...labels },
        exp_annotations: { summary, runbook_url: url },
      }
      return {
        interval: minutes > 100 ? '5m' : '1m',
        input_series: inputs(series),
        alert_rule_test: [{ eval_time: `${minutes}m`, alertname: name, exp_alerts: [expected] }],
      }
    })
    const isLong = ({ interval }: { interval: string }) => interval === '5m'
    const run = (evaluation_interval: string, tests: object[]) =>
      promtool(
        'test',
        'rules',
        written(`tests${evaluation_interval}.yml`, { rule_files: [alertsFile], evaluation_interval, tests }),
      )
    run('1m', [silent, ...firing.filter((one) => !isLong(one))])
    run('1h', firing.filter(isLong))
  })
})
