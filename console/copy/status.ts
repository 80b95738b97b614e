import { count, number } from './common.ts'

const span = (seconds: number): string =>
  seconds < 120
    ? count(seconds, 'second')
    : seconds < 7200
      ? count(Math.round(seconds / 60), 'minute')
      : count(Math.round(seconds / 3600), 'hour')

/** The state of the server. */
export const status = {
  title: 'Status',
  version: 'Version',
  process: 'Process',
  answers: 'answers',
  silent: 'does not answer',
  ready: 'Ready',
  is_ready: 'yes',
  socket: 'This tab’s socket',
  sockets: { open: 'connected', lost: 'reconnecting', off: 'not in use' } as Record<string, string>,
  clock: 'Clock',
  clock_same: 'This browser and the server agree.',
  clock_off: (seconds: number) =>
    `This browser is ${span(Math.abs(seconds))} ${seconds > 0 ? 'ahead of' : 'behind'} the server.`,
  stream: 'This tab’s audit stream',
  streams: { open: 'connected', off: 'not in use' },
  service: 'This node',
  node: 'Node.js',
  up: 'Running since',
  requests: 'Requests',
  connections: 'Connections',
  connections_of: (sockets: number, streams: number, most: number) =>
    `${count(sockets, 'socket')} and ${count(streams, 'audit stream')} of ${number(most)}`,
  database: 'Database connections',
  database_of: (n: { open: number; idle: number; waiting: number; max: number }) =>
    `${n.open - n.idle} busy, ${n.idle} idle, of ${n.max}${n.waiting > 0 ? `; ${count(n.waiting, 'call')} waiting` : ''}`,
  rows_lost: 'Audit rows lost',
  refusals: 'Refused',
  no_refusals: 'Nothing was refused yet.',
  reason: 'Reason',
  times: 'Times',
  meaning: 'Meaning',
  warnings: 'Warnings',
  zone: 'Times are shown in',
  zones: { '': 'the local zone of this browser', utc: 'UTC' },
}
