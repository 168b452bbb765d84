import { Box, Button, Center, Skeleton, Stack, Table, Text, UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import type { List } from '../api/lists.ts';
import classes from './data-table.module.css';
import { ErrorPanel, errorText } from './error-panel.tsx';

export interface Column<Row> {
  /** Shown at the column's head; on a phone before each value. */
  readonly title: string;
  readonly render: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  readonly align?: 'left' | 'right';
  /** Heads the row's card on a phone. */
  readonly isMain?: boolean;
  /** Where rows can be ordered by it: how they are now, and what a click on its head does. */
  readonly sort?: { readonly direction: 'ascending' | 'descending' | 'none'; readonly toggle: () => void };
}

export interface DataTableProps<Row> {
  /** Says what the table is of, for those who do not see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Stands last, in bold: what the rows come to. */
  readonly total?: Row | undefined;
  readonly rowKey: (row: Row) => string;
  /** What a click anywhere on a row does; some cell must hold a link or button that does the same, for the keyboard. */
  readonly onRowClick?: ((row: Row) => void) | undefined;
}

/** Rows under column heads; on a phone each row is a card. */
export function DataTable<Row>({ label, columns, rows, total, rowKey, onRowClick }: DataTableProps<Row>) {
  return (
    <Box className={classes.scroller} style={{ overflowX: 'auto' }}>
      {/* The roles are said outright: what a style shows as blocks is no table to a screen reader any more. */}
      <Table className={classes.table} role="table" aria-label={label} highlightOnHover={onRowClick !== undefined}>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map((column) => (
              <Table.Th
                key={column.title}
                role="columnheader"
                data-align={column.align}
                aria-sort={column.sort?.direction}
              >
                {column.sort === undefined ? column.title : <SortHead column={column} {...column.sort} />}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {(total === undefined ? rows : [...rows, total]).map((row) => (
            <Table.Tr
              key={rowKey(row)}
              role="row"
              className={classes.row}
              data-total={row === total ? true : undefined}
              data-clickable={onRowClick === undefined ? undefined : true}
              onClick={onRowClick === undefined ? undefined : () => onRowClick(row)}
            >
              {columns.map((column) => (
                <Table.Td
                  key={column.title}
                  role="cell"
                  data-align={column.align}
                  data-main={column.isMain === true ? true : undefined}
                >
                  <span className={classes.label} aria-hidden>
                    {column.title}
                  </span>
                  <div className={classes.value}>{column.render(row)}</div>
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  );
}

const sortSigns = { ascending: ' ↑', descending: ' ↓', none: '' } as const;

function SortHead<Row>({ column, direction, toggle }: { column: Column<Row> } & NonNullable<Column<Row>['sort']>) {
  return (
    <UnstyledButton fz="sm" fw={600} onClick={toggle}>
      {column.title}
      <span aria-hidden>{sortSigns[direction]}</span>
    </UnstyledButton>
  );
}

/** Placeholder of a table that is being read, as high as some rows of it. */
export function TableSkeleton({ rows = 5 }: { rows?: number }) {
  return (
    <Stack gap="xs" aria-busy aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, index) => index).map((row) => (
        <Skeleton key={row} height={36} radius="sm" />
      ))}
    </Stack>
  );
}

/** A list that is read page by page: its table, its loading, its error, its empty state and the way to more. */
export function ListTable<Row>({
  list,
  empty,
  ...table
}: Omit<DataTableProps<Row>, 'rows'> & { list: List<Row>; empty: ReactNode }) {
  if (list.error !== null) return <ErrorPanel error={list.error} onRetry={list.retry} />;
  if (list.isLoading) return <TableSkeleton />;
  return (
    <Stack gap="sm">
      {list.refreshError !== null && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          This is as it was before: {errorText(list.refreshError)}
        </Text>
      )}
      {list.rows.length === 0 ? empty : <DataTable rows={list.rows} {...table} />}
      {list.hasMore && (
        <Center>
          <Button variant="default" size="xs" loading={list.isLoadingMore} onClick={list.loadMore}>
            Show more
          </Button>
        </Center>
      )}
    </Stack>
  );
}
