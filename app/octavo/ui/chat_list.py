"""The list of chats at the left: draws the model's rows and says which one is wanted."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from octavo.ui.chat_list_model import ChatListModel, Role
from octavo.ui.palette import owner_colour
from octavo.ui.theme import Theme

_Index = QModelIndex | QPersistentModelIndex


class ChatListDelegate(QStyledItemDelegate):
    """Paints a heading, or a chat with its colour, title and what it is doing."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """Rows of one height for each kind."""
        height = 36 if index.data(Role.IS_HEADING) else 38
        return QSize(100, round(height * self._theme.zoom / 100))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw one row."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if index.data(Role.IS_HEADING):
            self._paint_heading(painter, option, index)
        else:
            self._paint_chat(painter, option, index)
        painter.restore()

    def _paint_heading(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.setFont(self._theme.font("meta"))
        painter.setPen(self._theme.colour("muted"))
        rect = option.rect.adjusted(18, 8, -10, 0)
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, str(index.data(Role.TITLE)))

    def _paint_chat(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        theme = self._theme
        row: QRect = option.rect.adjusted(8, 2, -8, -2)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        is_hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        if is_selected or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("selection" if is_selected else "hover"))
            painter.drawRoundedRect(row, 8, 8)
        if option.state & QStyle.StateFlag.State_HasFocus and is_selected:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.colour("accent"))
            painter.drawRoundedRect(row.adjusted(0, 0, -1, -1), 8, 8)
        owner = index.data(Role.OWNER)
        if owner is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(owner_colour(int(owner))))
            painter.drawRoundedRect(QRect(row.left() + 6, row.top() + 8, 3, row.height() - 16), 1.5, 1.5)
        elif index.data(Role.UNREAD):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("accent"))
            painter.drawEllipse(QPoint(row.left() + 7, row.center().y() + 1), 3, 3)
        self._paint_words(painter, row.adjusted(16, 0, -10, 0), index)

    def _paint_words(self, painter: QPainter, rect: QRect, index: _Index) -> None:
        theme = self._theme
        detail = str(index.data(Role.DETAIL) or "")
        painter.setFont(theme.font("meta"))
        width = painter.fontMetrics().horizontalAdvance(detail)
        is_error = index.data(Role.STATE) == "error"
        painter.setPen(theme.colour("rubric" if is_error and theme.palette.name == "light" else "muted"))
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, detail)
        painter.setFont(theme.font("body", bold=bool(index.data(Role.UNREAD))))
        painter.setPen(theme.colour("ink"))
        rest = rect.adjusted(0, 0, -(width + 8) if detail else 0, 0)
        title = painter.fontMetrics().elidedText(str(index.data(Role.TITLE)), Qt.TextElideMode.ElideRight, rest.width())
        painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, title)


class ChatList(QListView):
    """The view; `chosen` names the chat that the reader wants."""

    chosen = Signal(str)
    menuWanted = Signal(str, QPoint)

    def __init__(self, model: ChatListModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._current = ""
        self.setObjectName("chatList")
        self.setAccessibleName("Chats")
        self.setModel(model)
        self.setItemDelegate(ChatListDelegate(theme, self))
        self.setMouseTracking(True)
        self.setUniformItemSizes(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        self.selectionModel().currentChanged.connect(self._on_current)
        model.modelReset.connect(self._select_current)
        theme.changed.connect(self.doItemsLayout)

    def show_chat(self, chat_id: str) -> None:
        """Mark the chat that is shown."""
        self._current = chat_id
        self._select_current()

    def _select_current(self) -> None:
        index = self._model.index_of(self._current)
        selection = self.selectionModel()
        selection.blockSignals(True)
        if index.isValid():
            selection.setCurrentIndex(index, selection.SelectionFlag.ClearAndSelect)
        else:
            selection.clear()
        selection.blockSignals(False)
        self.viewport().update()

    def _on_current(self, index: QModelIndex) -> None:
        chat_id = index.data(Role.CHAT_ID)
        if chat_id and chat_id != self._current:
            self._current = chat_id
            self.chosen.emit(chat_id)

    def _on_menu(self, position: QPoint) -> None:
        chat_id = self.indexAt(position).data(Role.CHAT_ID)
        if chat_id:
            self.menuWanted.emit(chat_id, self.viewport().mapToGlobal(position))
