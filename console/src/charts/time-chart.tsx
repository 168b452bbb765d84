import { Box, Button, Group, Paper, Text, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useId } from 'react';
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  Legend,
  Line,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import { DataTable } from '../components/data-table.tsx';
import { type Unit, type UnitName, units } from './units.ts';

/** A time bucket with its values; null: nothing was measured. */
export interface TimePoint {
  /** Ms since 1970 of its start. */
  readonly at: number;
  /** Short, for the axis. */
  readonly label: string;
  /** With its date, which no other point has. */
  readonly name: string;
  readonly [series: string]: number | string | null;
}

export interface Series {
  /** The name of its value in the points. */
  readonly key: string;
  readonly name: string;
  readonly color: string;
}

const chartHeight = 220;

/** Values over time as bars, areas or lines, and the same as a table. */
export function TimeChart({
  title,
  total,
  points,
  series,
  kind,
  unit,
}: {
  title: string;
  /** The total, shown beside the title. */
  total?: string | undefined;
  points: readonly TimePoint[];
  series: readonly Series[];
  kind: 'bar' | 'area' | 'line';
  unit: UnitName;
}) {
  const { format } = units[unit];
  const [isTable, { toggle }] = useDisclosure(false);
  const heading = useId();
  return (
    <Paper
      component="section"
      withBorder
      p={{ base: 'sm', sm: 'md' }}
      bg="var(--sluice-card)"
      miw={0}
      aria-labelledby={heading}
    >
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb="xs">
        <div>
          <Title order={2} id={heading} fz="sm" fw={600} c="dimmed">
            {title}
          </Title>
          {total !== undefined && (
            <Text fz="xl" fw={650} lh={1.2} className="numbers">
              {total}
            </Text>
          )}
        </div>
        <Button
          variant="subtle"
          size="compact-xs"
          onClick={toggle}
          aria-label={`${isTable ? 'Chart' : 'Table'}: ${title}`}
        >
          {isTable ? 'Chart' : 'Table'}
        </Button>
      </Group>
      {isTable ? (
        <Box mah={320} style={{ overflowY: 'auto' }} tabIndex={0} role="region" aria-labelledby={heading}>
          <DataTable
            label={title}
            rows={points}
            rowKey={(point) => String(point.at)}
            columns={[
              { title: 'Time', render: (point) => point.name, isMain: true },
              ...series.map(({ key, name }) => ({
                title: name,
                align: 'right' as const,
                render: (point: TimePoint) => format(numberOf(point, key)),
              })),
            ]}
          />
        </Box>
      ) : (
        <Box role="img" aria-label={`Chart: ${title}${total === undefined ? '' : `, ${total}`}`} h={chartHeight}>
          <Drawing points={points} series={series} kind={kind} unit={units[unit]} />
        </Box>
      )}
    </Paper>
  );
}

function numberOf(point: TimePoint, key: string): number | null {
  const value = point[key];
  return typeof value === 'number' ? value : null;
}

/** The largest value drawn; bars are stacked. */
function greatest(points: readonly TimePoint[], series: readonly Series[], kind: 'bar' | 'area' | 'line'): number {
  const values = points.map((point) => series.map(({ key }) => numberOf(point, key) ?? 0));
  const heights = kind === 'bar' ? values.map((parts) => parts.reduce((sum, part) => sum + part, 0)) : values.flat();
  return heights.reduce((max, height) => Math.max(max, height), 0);
}

/** The same for all charts, so that times align. */
const axisWidth = 64;

const noValue = (): null => null;

const axisText = { fill: 'var(--mantine-color-dimmed)', fontSize: 12 };

function Drawing({
  points,
  series,
  kind,
  unit: { format, axis },
}: {
  points: readonly TimePoint[];
  series: readonly Series[];
  kind: 'bar' | 'area' | 'line';
  unit: Unit;
}) {
  const { ticks, format: formatTick } = axis(greatest(points, series, kind));
  return (
    <ResponsiveContainer width="100%" height={chartHeight}>
      {/* Keyboard users read the values in the table: nothing inside an image can take the focus. */}
      <ComposedChart
        data={[...points]}
        margin={{ top: 8, right: 4, bottom: 0, left: 0 }}
        accessibilityLayer={false}
        // All charts of a page have the same points: hovering one shows the values in each.
        syncId="time"
      >
        <CartesianGrid vertical={false} stroke="var(--sluice-line)" />
        <XAxis dataKey="label" tick={axisText} tickLine={false} axisLine={false} minTickGap={28} />
        <YAxis
          tick={axisText}
          tickLine={false}
          axisLine={false}
          width={axisWidth}
          ticks={[...ticks]}
          domain={[0, ticks.at(-1) ?? 0]}
          interval={0}
          tickFormatter={(value: number) => formatTick(value).replaceAll(' ', '\u00a0')}
        />
        <Tooltip
          isAnimationActive={false}
          cursor={{ fill: 'var(--mantine-color-default-hover)', stroke: 'var(--sluice-line)' }}
          contentStyle={{
            background: 'var(--sluice-card)',
            border: '1px solid var(--sluice-line)',
            borderRadius: 8,
            fontSize: 13,
          }}
          itemStyle={{ color: 'var(--mantine-color-text)' }}
          labelStyle={{ color: 'var(--mantine-color-dimmed)' }}
          labelFormatter={(label, [first]) => (first?.payload as TimePoint | undefined)?.name ?? label}
          formatter={(value) => format(typeof value === 'number' ? value : null)}
        />
        {series.length > 1 && (
          <Legend
            itemSorter={null}
            iconType="circle"
            iconSize={8}
            wrapperStyle={{ fontSize: 12 }}
            formatter={(name) => <span style={{ color: 'var(--mantine-color-text)' }}>{name}</span>}
          />
        )}
        {/* Invisible bars: they align the points of lines with the middles of other charts' bars. */}
        {kind !== 'bar' && <Bar dataKey={noValue} legendType="none" tooltipType="none" isAnimationActive={false} />}
        {series.map((one) => drawSeries(one, kind))}
      </ComposedChart>
    </ResponsiveContainer>
  );
}

function drawSeries({ key, name, color }: Series, kind: 'bar' | 'area' | 'line') {
  const common = { dataKey: key, name, isAnimationActive: false } as const;
  if (kind === 'bar')
    return <Bar key={key} {...common} fill={color} stackId="all" maxBarSize={36} radius={[2, 2, 0, 0]} />;
  if (kind === 'area') {
    return <Area key={key} {...common} type="linear" stroke={color} strokeWidth={2} fill={color} fillOpacity={0.18} />;
  }
  // A bucket without a measurement is bridged: a gap would make single points invisible.
  return (
    <Line key={key} {...common} type="linear" stroke={color} strokeWidth={2} dot={{ r: 2, fill: color }} connectNulls />
  );
}
